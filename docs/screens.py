"""Takes the pictures that the docs show: of the workbench, a report, a study and judges, from data of the package.

Run by hand with `python -m docs.screens [FOLDER [people]]` where Chromium is: servers are started, and a browser does
what the docs tell of.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1280, 800
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chromium-headless-shell")
PATIENCE = 120_000
"""Milliseconds until something that should have appeared counts as a fault, on a busy machine too."""
PARTICIPANTS = 20
"""Simulated participants of the study before the pictures are taken, at least."""
SERVE = "from demur.apps.cli.main import run; run()"


@dataclass(frozen=True)
class Shot:
    """A picture: what it is called, the page, what is done there first, and what stands at its top."""

    name: str
    path: str
    act: Callable[[Any], None] | None = None
    top: str = ""
    schemes: tuple[str, ...] = ("light",)
    height: int = HEIGHT

    def file(self, scheme: str) -> str:
        """The name of its file; dark ones say so."""
        return f"{self.name}.png" if scheme == "light" else f"{self.name}-{scheme}.png"


def museum_logs(folder: Path) -> list[Path]:
    """Three models of the museum guide on misheard questions, with lists of hypotheses and a slice by length."""
    import polars as pl

    import demur
    from demur.lab.corpora import museum
    from demur.lab.understanding_experiments import DEMO_TOKENS, WER, split_corpus
    from demur.understanding.noise import WordChannel

    material = split_corpus(museum())
    inputs, ids = material.test["input"].to_list(), material.test["id"].to_list()
    heard = WordChannel(material.texts, wer=WER, seed=0).recognise(inputs, ids).texts
    words = pl.Series([len(text.split()) for text in inputs])
    length = words.cut([5, 8], labels=["up to 5 words", "6 to 8 words", "9 words or more"]).cast(pl.String)
    asked = material.test.with_columns(pl.Series("input", heard), length.alias("length"))
    pairs = [{"input": text, "target": label} for text, label in zip(material.texts, material.labels, strict=True)]
    paths = []
    for tokens in DEMO_TOKENS:
        answers = demur.respond(demur.train(pairs, tokens=tokens), asked).frame().drop("why", "returned", strict=False)
        paths.append(folder / f"{tokens}.jsonl")
        answers.write_ndjson(paths[-1])
    return paths


def filled(root: Path, logs: list[Path]) -> dict[str, str]:
    """A store of the museum guide and of the simulated studies; the ids of its runs by their names."""
    from demur.lab import tutor
    from demur.lab.corpora import restaurant_folder, wizards
    from demur.store.intake import RunReading
    from demur.store.runs import Store

    turns, gains = tutor.study()
    tables = {"tutor": turns, "tutor gains": gains, "tutor, cautious": tutor.answers(turns, "cautious")}
    with closing(Store.open(root)) as store:
        store.add(
            wizards().folder / "trials.csv", name="wizards", tags=("study",), reading=RunReading(x="wer", y="completed")
        )
        store.add(restaurant_folder() / "turns.jsonl.gz", name="restaurant guide", tags=("study",))
        for name, rows in tables.items():
            path = logs[0].with_name("table.jsonl")
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            store.add(path, name=name, tags=("study", "tutor"))
        notes = ("baseline: words only", "phones of the recognised words", "words and phones together")
        for path, note in zip(logs, notes, strict=True):
            store.add(path, tags=("museum", "noisy"), note=note)
        return {run.name: run.id for run in store.runs()}


def shots(ids: dict[str, str], report: Path) -> list[Shot]:
    """All pictures; the one that shows most in both schemes."""
    words, mixed = ids["words"], ids["mixed"]
    compare = f"/compare?run={words}&run={mixed}"
    outcome = f"/outcome?turns={ids['tutor']}&dialogues={ids['tutor gains']}&with={ids['tutor, cautious']}"
    errors = f"/errors?run={mixed}&other={words}&threshold=0.35&other_threshold=0.35"
    return [
        Shot("workbench-runs", f"/runs?run={words}&run={mixed}"),
        Shot("workbench-run", f"/run/{mixed}", height=1120),
        Shot("workbench-compare", compare, dragged, ".verdict", ("light", "dark"), height=1200),
        Shot("workbench-answers", f"{compare}&x=0.55&show=alone", opened, "#answers"),
        Shot("workbench-errors", errors, opened),
        Shot("workbench-nbest", f"/nbest/{ids['restaurant guide']}", top="#inspector"),
        Shot("workbench-outcome", outcome, mended, "#confusions", height=960),
        Shot("workbench-gold", f"/gold/{ids['wizards']}", top="#figure-gold-1"),
        Shot("report", report.as_uri()),
    ]


def dragged(page: Any) -> None:
    """The point taken along the curve, as a hand does it."""
    page.locator(".explorer-alive").wait_for()
    box = page.locator(".explorer-plot svg").bounding_box()
    across = [box["x"] + box["width"] * share for share in (0.3, 0.575)]
    page.mouse.move(across[0], box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(across[1], box["y"] + box["height"] / 2, steps=8)
    page.mouse.up()


def opened(page: Any) -> None:
    """The hypotheses behind the first answer, unfolded."""
    page.locator(".answers-table summary").first.click()


def mended(page: Any) -> None:
    """The dearest confusion chosen, and half of it put right."""
    page.locator("table.map td.up-5 a").first.click()
    page.locator(".sliders input[type=range]").first.fill("50")
    page.get_by_text("a change of").wait_for()


@contextmanager
def served(root: Path) -> Iterator[str]:
    """A server over a store, and where it is."""
    command = [sys.executable, "-c", SERVE, "serve", "--store", str(root), "--port", "0", "--no-token"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            links = (word for line in server.stderr or () for word in line.split() if word.startswith("http://"))
            yield next(links).rstrip("/")
        finally:
            server.terminate()


def taken(browser: Any, url: str, shot: Shot, scheme: str, folder: Path) -> None:
    """Open a page, wait until all is drawn, do what is to be done there, and keep the picture."""
    window = {"width": WIDTH, "height": shot.height}
    context = browser.new_context(viewport=window, color_scheme=scheme, base_url=url, reduced_motion="reduce")
    with closing(context):
        page = context.new_page()
        page.goto(shot.path)
        page.wait_for_selector(".waiting", state="detached", timeout=120_000)
        page.wait_for_load_state("networkidle")
        if shot.act is not None:
            shot.act(page)
        if shot.top:
            page.locator(shot.top).first.evaluate(
                "(one) => scrollTo(0, one.getBoundingClientRect().top + scrollY - 12)"
            )
        page.mouse.move(0, 0)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=folder / shot.file(scheme), animations="disabled")


@contextmanager
def started(*command: str, last: str) -> Iterator[dict[str, str]]:
    """A server that a command starts, and the links that it prints, by who they are for."""
    with subprocess.Popen([sys.executable, "-c", SERVE, *command], stderr=subprocess.PIPE, text=True) as server:
        try:
            links: dict[str, str] = {}
            for line in server.stderr or ():
                name, colon, link = line.strip().partition(": http")
                links |= {name.partition(" (")[0]: f"http{link}"} if colon else {}
                if line.startswith(last):
                    break
            yield links
        finally:
            server.terminate()


def study_pictures(browser: Any, made: Path, folder: Path) -> None:
    """A participant in a dialogue with a wizard, and the experimenter who looks on."""
    from demur.study.demo import SimulatedStudy, write_simulated
    from demur.study.design import read_design
    from demur.study.folder import new_folder
    from demur.study.pairing import plan_for

    place = made / "museum"
    new_folder(place, alone=True)
    text = (place / "study.toml").read_text(encoding="utf-8").replace('names = ["you"]', 'names = ["anna", "ben"]')
    (place / "study.toml").write_text(text, encoding="utf-8")
    design = read_design(place)
    met_first = {count: plan_for(design, count, {})[0] for count in range(PARTICIPANTS, 2 * PARTICIPANTS)}
    count = next(count for count, (who, level, _) in met_first.items() if who == "wizard" and 0 < level < 0.7)
    write_simulated(place, SimulatedStudy(place, design, 1).run(count))
    with started("study", "serve", str(place), "--port", "0", last="Participants") as links:
        wizard, participant, watcher = (one.new_page() for one in opened_windows(browser, 3))
        wizard.goto(links["Wizard anna"])
        participant.goto(links["Participants"])
        for what in ("Begin", "I agree"):
            participant.get_by_role("button", name=what, exact=True).click()
        participant.get_by_label("now and then").check()
        participant.get_by_role("button", name="Continue").click()
        participant.get_by_role("button", name="Start the conversation").click()
        participant.fill("#text:not([disabled])", "when do you open on sunday")
        participant.press("#text", "Enter")
        wizard.wait_for_selector("#heard:not([hidden])")
        wizard.screenshot(path=folder / "study-wizard.png")
        wizard.keyboard.press("c")
        wizard.click("#slots button.main")
        participant.locator(".lines .guide", has_text="Did you ask about").wait_for()
        participant.screenshot(path=folder / "study-participant.png")
        watcher.goto(links["Experimenter"])
        watcher.wait_for_selector("#live table")
        watcher.screenshot(path=folder / "study-experimenter.png")
        watcher.click("#draw")
        watcher.locator("#benchmark img").wait_for()
        watcher.locator("#benchmark").screenshot(path=folder / "study-benchmark.png")


def judge_pictures(browser: Any, log: Path, folder: Path) -> None:
    """A judge, agreement between two, and what they disagree on."""
    judged = str(log.with_name("judged.jsonl"))
    options = ("--judges", "anna,ben", "--overlap", "1", "--sample", "24", "--show", "target", "--port", "0")
    with started("judge", str(log), "-o", judged, *options, last="Lead") as links:
        pages = {name: window.new_page() for name, window in zip(links, opened_windows(browser, 3), strict=True)}
        for name, page in pages.items():
            page.goto(links[name])
        pages["anna"].screenshot(path=folder / "judge-page.png")
        for name in ("anna", "ben"):
            while pages[name].locator("#choice").is_visible():
                asked, target, said = pages[name].locator("#item dd").all_inner_texts()
                unlike = name == "ben" and len(asked) % 9 == 0
                done = pages[name].locator("#count").inner_text()
                pages[name].keyboard.press("r" if (said == target) != unlike else "w")
                pages[name].locator(f"#count:not(:text-is({json.dumps(done)}))").wait_for()
        pages["Lead"].wait_for_timeout(3000)  # agreement is computed every other second
        pages["Lead"].reload()
        pages["Lead"].screenshot(path=folder / "judge-overview.png")
        pages["Lead"].get_by_text("Settle disagreements").click()
        pages["Lead"].screenshot(path=folder / "judge-settle.png")


def opened_windows(browser: Any, count: int) -> list[Any]:
    """Windows that know nothing of each other, as of different people."""
    windows = [browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}) for _ in range(count)]
    for one in windows:
        one.set_default_timeout(PATIENCE)
    return windows


def main(folder: Path = IMAGES, *only: Path) -> None:
    """Take all pictures, or only those of `people`: studies and judges."""
    from playwright.sync_api import sync_playwright

    import demur

    chromium = os.environ.get("DEMUR_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    with TemporaryDirectory() as temporary, sync_playwright() as driver:
        made = Path(temporary)
        logs = museum_logs(made)
        browser = driver.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        study_pictures(browser, made, folder)
        judge_pictures(browser, logs[2], folder)
        if only:
            return
        demur.report(logs[0], logs[2], title="The museum guide, misheard").save(made / "report.html")
        ids = filled(made / "store", logs)
        with closing(browser), served(made / "store") as url:
            for shot in shots(ids, made / "report.html"):
                for scheme in shot.schemes:
                    taken(browser, url, shot, scheme, folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
