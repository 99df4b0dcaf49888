"""What the README and the docs say is run here, in this process but for the README's first command.

Commands of the pages on lists, outcomes, gold standards and understanding are run by the golden tests; the pages show
what was recorded of them.
"""

import doctest
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

import pytest
from docs.origins import FIXTURES, Origin, origins

from commands import Done, run_in
from demur.importers import REGISTRY
from demur.store.runs import Store
from golden.record import recorded_run
from pages import BLOCK, README, ROOT, blocks, read_page, run_python, write_files

SCALE = read_page("scale")
NBEST = read_page("nbest")
OUTCOME = read_page("outcome")
GOLD = read_page("gold")
UNDERSTANDING = read_page("understanding")
DIALOGUE = read_page("dialogue")
READING = read_page("reading")
FIRST_HOUR = read_page("first_hour")
THRESHOLD = read_page("threshold")
RECALIBRATE = read_page("recalibrate")
REPORT = read_page("report")
CI = read_page("ci")
WORKBENCH = read_page("workbench")
INTEGRATIONS = read_page("integrations")
PAGES = tuple((ROOT / "docs").glob("*.md"))
MOST_WORDS = 2000
"""Of a page that is no reference."""
TYPED = re.compile(r"((?:(?:echo|printf) .* \| )?)demur (.*)")
EXIT_CODES = {"gate": 1, "error": 2}
FEWER = {
    **dict.fromkeys(["demo", "score", "compare", "report", "nbest", "merge", "follow", "gold"], "--replicates 50"),
    **dict.fromkeys(["outcome fit", "understand tune"], "--replicates 50"),
    "plan": "--studies 20",
    "verify-engine": "--rows 300",
}
"""Options of fewer draws or rows, at which these commands print what the pages show of them."""
OF_DRAWS = re.compile(r"prefer|Significantly nearer|p [<=] |^error:")
"""What is shown of a command whose every draw matters, or that does not come to draw."""


@pytest.fixture(scope="module", autouse=True)
def drawn_once() -> Iterator[None]:
    """Pictures that several pages ask for are drawn once."""
    from demur.core.show.pictures import DrawingProcess

    drawn: dict[str, bytes] = {}
    draw = DrawingProcess.draw

    def once(process: DrawingProcess, *asked: Any, **options: Any) -> bytes:
        key = json.dumps([asked, options])
        return drawn[key] if key in drawn else drawn.setdefault(key, draw(process, *asked, **options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DrawingProcess, "draw", once)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the project's with the README's files, its first command run, so that its logs are there."""
    made = tmp_path_factory.mktemp("readme")
    (made / "src").symlink_to(ROOT / "src", target_is_directory=True)
    write_files(README, made)
    run_console(blocks("console")[0], made, apart)
    return made


def apart(command: str, folder: Path) -> Done:
    """A line typed into a shell, something piped to the command perhaps."""
    piped, arguments = TYPED.fullmatch(command).groups()
    program = f'{piped}"{sys.executable}" -c "from demur.apps.cli.main import run; run()" {arguments}'
    return subprocess.run(program, shell=True, cwd=folder, capture_output=True, text=True, timeout=300)


def inside(command: str, folder: Path) -> Done:
    """The same in this process, without a pipe; what a shell would do to `*` the command does itself."""
    return run_in(folder, *shlex.split(command.removeprefix("demur ")))


def recorded(command: str, folder: Path) -> Done:
    """What golden/test_golden.py has the command print, or, where that is not recorded, what it prints here."""
    piped, arguments = TYPED.fullmatch(command).groups()
    text = shlex.split(piped)[1].replace("\\n", "\n") if piped else ""
    return recorded_run(arguments, text) or (apart if piped else inside)(command, folder)


def run_console(block: str, folder: Path, done_by: Callable[[str, Path], Done] = inside) -> None:
    """Run each `$` line; the lines below it must occur in the output in this order, `...` standing for anything.

    How columns are aligned does not count. Lines that begin with a fault are what standard error says, and the exit
    code is that of the fault.
    """
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        assert TYPED.fullmatch(command), command
        asked = command if OF_DRAWS.search(expected) else at_fewer_draws(command)
        done = (done_by if done_by is recorded or command.startswith("demur ") else apart)(asked, folder)
        code = EXIT_CODES.get(expected.partition(":")[0], 0)
        assert done.returncode == code, f"{command}\n{done.stderr}"
        said = unaligned(done.stderr if code else done.stdout)
        parts = (re.escape(part) for part in re.split(r"\.\.\.", unaligned(expected).strip()))
        pattern = ".*".join(re.sub(r"\\ $", "(?: |$)", part) for part in parts)  # what is recorded ends in no space
        assert re.search(pattern, said, re.DOTALL | re.MULTILINE), f"{command}\nexpected:\n{expected}\ngot:\n{said}"


def unaligned(text: str) -> str:
    """A text whose tables have columns of no width: pages leave out columns and parts of cells."""
    return re.sub("─+", "─", re.sub(" +", " ", text))


def at_fewer_draws(command: str) -> str:
    """The command with an option for fewer draws, if it draws and does not say how often."""
    added = [option for name, option in FEWER.items() if command.startswith(f"demur {name} ")]
    return " ".join([command, *(option for option in added if option.split()[0] not in command)])


@pytest.mark.parametrize("place", range(1, len(blocks("console"))))
def test_the_readmes_commands_run_and_print_what_it_shows(folder: Path, place: int) -> None:
    run_console(blocks("console")[place], folder)


@pytest.mark.parametrize("place", range(len(blocks("python"))))
def test_the_readmes_python_runs_and_prints_what_it_shows(folder: Path, place: int) -> None:
    run_python(blocks("python")[place], folder)


def test_the_page_on_scale_runs_from_top_to_bottom(folder: Path) -> None:
    for kind, text in BLOCK.findall(SCALE):
        {"console": run_console, "python": run_python}[kind](text, folder)


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page on N-best lists asks for, its Python run there as one session."""
    made = tmp_path_factory.mktemp("nbest")
    write_files(NBEST, made)
    run_python("\n".join(blocks("python", NBEST)), made)
    return made


@pytest.mark.parametrize("place", range(len(blocks("console", NBEST))))
def test_the_page_on_nbest_lists_runs_and_prints_what_it_shows(lists: Path, place: int) -> None:
    run_console(blocks("console", NBEST)[place], lists, recorded)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page on outcomes asks for, its Python run there as one session."""
    made = tmp_path_factory.mktemp("outcome")
    write_files(OUTCOME, made)
    run_python("\n".join(blocks("python", OUTCOME)), made)
    return made


def test_the_page_on_outcomes_runs_from_top_to_bottom(study: Path) -> None:
    for block in blocks("console", OUTCOME):
        run_console(block, study, recorded)


def test_the_page_on_dialogues_runs_from_top_to_bottom(tmp_path: Path) -> None:
    run_python("\n".join(blocks("python", DIALOGUE)), tmp_path)
    for block in blocks("console", DIALOGUE):
        run_console(block, tmp_path, recorded)


@pytest.fixture(scope="module")
def wizards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page on gold standards asks for, its Python run there as one session."""
    made = tmp_path_factory.mktemp("gold")
    write_files(GOLD, made)
    run_python("\n".join(blocks("python", GOLD)), made)
    return made


def test_the_page_on_gold_standards_runs_from_top_to_bottom(wizards: Path) -> None:
    for block in blocks("console", GOLD):
        run_console(block, wizards, recorded)


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page on understanding asks for, its Python run there as one session."""
    made = tmp_path_factory.mktemp("understanding")
    write_files(UNDERSTANDING, made)
    run_python("\n".join(blocks("python", UNDERSTANDING)), made)
    return made


def test_the_page_on_understanding_runs_from_top_to_bottom(guide: Path) -> None:
    for block in blocks("console", UNDERSTANDING):
        run_console(block, guide, recorded)


@pytest.mark.parametrize("origin", origins(), ids=[one.name for one in origins()])
def test_the_commands_of_every_origin_run_on_its_logs_and_draw_its_picture(tmp_path: Path, origin: Origin) -> None:
    for name, fixture in origin.files.items():
        shutil.copy(FIXTURES / fixture, tmp_path / name)
    for command in (origin.drawing, *map(at_fewer_draws, origin.commands[1:])):
        done = inside(command, tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert_looks_alike(tmp_path / "plot.svg", f"origin-{origin.name}.svg")


@pytest.mark.parametrize("paper", ["returns", "nbest", "outcome", "gold"])
def test_every_file_of_a_paper_is_accounted_for(tmp_path: Path, paper: str) -> None:
    """Where it comes from stands below the table; lines that copy bundled files are run."""
    table, files = (ROOT / "docs" / f"papers_{paper}.md").read_text(encoding="utf-8").split("## The files")
    commands = re.findall(r"^\|[^|]*\| `demur ([^`]+)` \|", table, re.MULTILINE)
    read = {
        name
        for command in commands
        for name in re.findall(r"(?<![\w/-])(logs/|guide\b|[\w-]+\.(?:jsonl?|csv|txt))", command)
    }
    assert read, "no command reads a file"
    written = set(re.findall(r"(?:-o|--model) (\S+)", " ".join(commands)))
    assert not {name for name in read - written if f"`{name}`" not in files}
    for code in blocks("python", files):
        run_python(code, tmp_path)
    assert all(
        (tmp_path / name).is_file()
        for row in files.splitlines()
        if "the lines below copy" in row
        for name in re.findall(r"`(\S+)`", row)
    )


def test_every_importer_is_an_origin() -> None:
    assert {one.name for one in origins()} == REGISTRY.keys() - {"beetle"}, "BEETLE II is on the page of the papers"


@pytest.mark.parametrize("block", blocks("python", INTEGRATIONS), ids=["sklearn", "mlflow", "wandb", "evaluate"])
@pytest.mark.filterwarnings("ignore")
def test_the_lines_for_other_tools_run_where_these_are(tmp_path: Path, block: str) -> None:
    for package in re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE):
        pytest.importorskip(package, reason=f"{package} is not installed")
    run_python(block, tmp_path)


def test_the_github_action_gates_without_a_baseline_too(tmp_path: Path) -> None:
    rows = [{"id": k, "target": "a", "prediction": "ab"[k % 3 == 0], "confidence": k / 9} for k in range(9)]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    asked = {"LOG": "new.jsonl", "BASELINE": "none.jsonl", "OPTIONS": "--replicates 50", "REPORT": "report.md"}
    asked |= {"FAIL_IF": "new is significantly worse\nforced_error > 0.1", "GITHUB_STEP_SUMMARY": "summary.md"}
    asked["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run([ROOT / "tools" / "gate.sh"], cwd=tmp_path, env=asked, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "FAIL new: forced_error > 0.1 holds" in done.stdout
    assert "### Gates" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_the_worked_example_is_counted_as_by_pencil(tmp_path: Path) -> None:
    from docs.worked import EACH, RIGHT, rows

    import demur

    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in READING.splitlines() if "|" in line]
    log, points = cells[2:7], cells[9:15]
    assert {float(one): int(right) for one, _, right, _ in log} == RIGHT
    assert all(int(n) == EACH == int(right) + int(wrong) for _, n, right, wrong in log)
    (curve,) = [one.curve for one in demur.score(rows(), replicates=50)]
    counted = [
        [round(100 * rate) for rate in one] for one in zip(curve.nonreturn, curve.error, curve.accuracy, strict=True)
    ]
    assert [[int(number) for number in line[1:]] for line in points] == counted
    missed = sum(RIGHT.values()) - counted[3][2]
    assert f"{missed} would have been right" in READING
    run_python(blocks("python", READING)[0], tmp_path)


@pytest.mark.parametrize(
    "page",
    [FIRST_HOUR, THRESHOLD, RECALIBRATE, REPORT, CI, WORKBENCH],
    ids=["first_hour", "threshold", "recalibrate", "report", "ci", "workbench"],
)
def test_the_tutorial_and_the_pages_on_results_run_from_top_to_bottom(folder: Path, page: str) -> None:
    """Their first command makes the logs of the README, which are there."""
    assert blocks("console", page)[0] == blocks("console")[0]
    for kind, text in BLOCK.findall(page)[1:]:
        if kind in ("console", "python") and text != blocks("console")[0]:
            {"console": run_console, "python": run_python}[kind](text, folder)


def test_the_requests_on_the_page_on_the_workbench_are_answered(folder: Path, tmp_path: Path) -> None:
    """Without the server and its process, which apps/web/test_serve.py starts."""
    pytest.importorskip("starlette", reason="the workbench needs the extra: pip install 'demur[web]'")
    from starlette.testclient import TestClient

    from apps.web.inside import InsideWorker
    from demur.apps.web.security import LOOPBACK
    from demur.apps.web.server import application
    from demur.apps.web.site import Site

    lines = [line for block in blocks("sh", WORKBENCH) for line in block.splitlines() if line.startswith("curl ")]
    token = "of-the-page-on-the-workbench"
    with Store.open(tmp_path / "store") as store, closing(InsideWorker(store.root)) as worker:
        for name in ("words", "mixed"):
            store.add(folder / "logs" / f"{name}-noisy.jsonl", tags=("museum",))
        app = application(Site(store, worker), hosts=LOOPBACK, token=token)
        client = TestClient(app, base_url="http://127.0.0.1:8378")
        asked = [requested(line.replace("$DEMUR_TOKEN", token), folder) for line in lines]
        runs, compared, wrong, added = [client.request(**one).raise_for_status().json() for one in asked]
    assert {run["name"] for run in runs["runs"]} == {"words-noisy", "mixed-noisy"}
    assert "mixed-noisy dominates words-noisy" in compared["result"]["sentences"][0]
    assert wrong["total"] == len([row for row in wrong["rows"] if not row["right"]]) > 0
    assert added["job"]["about"] == "Reading phones-noisy.jsonl"


def requested(line: str, folder: Path) -> dict[str, Any]:
    """What a line with `curl` asks for, whether or not that is installed."""
    _, *options, url = shlex.split(line)
    given = dict(zip(options[::2], options[1::2], strict=True))
    headers = dict([given["--header"].split(": ")]) if "--header" in given else {}
    headers["Authorization"] = f"Bearer {given['--oauth2-bearer']}"
    body = (folder / given["--data-binary"].removeprefix("@")).read_bytes() if "--data-binary" in given else None
    return {"method": "GET" if body is None else "POST", "url": url, "headers": headers, "content": body}


def test_the_pictures_of_the_docs_are_small_and_shown() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
    for picture in (ROOT / "docs" / "images").glob("*.png"):
        assert picture.stat().st_size < 200_000, picture.name
        assert f"images/{picture.name}" in pages


WITH_COMMAND = re.compile(r"^```sh\n(.+)\n```\n\n!\[.*?\]\(images/(.+?)\)$", re.MULTILINE)
GALLERY = {picture: command for command, picture in WITH_COMMAND.findall(read_page("gallery"))}
"""The command of every figure of the docs."""
REDRAWN = (
    "demo-noisy.svg",
    "reading-example.svg",
    "scale.svg",
    "nbest-reward.svg",
    "outcome-prices.svg",
    "gold-cost.svg",
    "gold-plan.svg",
    "understanding-bands.svg",
)
"""One or two figures of each page whose commands take seconds; the test of origins has theirs."""


def test_the_gallery_has_every_picture_with_its_command_or_says_what_took_it() -> None:
    pictures = set(re.findall(r"\(images/(.+?)\)$", read_page("gallery"), re.MULTILINE))
    assert pictures == {one.name for one in (ROOT / "docs" / "images").iterdir()}
    assert {one for one in pictures if one.endswith(".svg")} == {*GALLERY}
    sections = [part for part in read_page("gallery").split("\n## ") if ".png)" in part]
    assert all("`python -m docs.screens FOLDER`" in part for part in sections)


def test_the_gallery_says_where_the_files_of_its_commands_come_from() -> None:
    said, _, shown = read_page("gallery").partition("\n## ")
    pages = [
        page.split("```sh\n", 1)[1] for page in shown.split("\n## ") if "```sh\n" in page and "origin_" not in page
    ]
    words = {word for page in pages for word in re.findall(r"[\w/.-]+\.(?:jsonl|csv|json)(?:\.gz)?", page)}
    assert not {word for word in words if f"`{word}`" not in said and not (ROOT / word).is_file()}


@pytest.mark.parametrize("picture", REDRAWN)
def test_a_figure_of_the_gallery_is_what_its_command_draws(
    folder: Path, wizards: Path, study: Path, picture: str
) -> None:
    made = {"gold": wizards, "outcome": study}.get(picture.partition("-")[0], folder)
    program, *words = shlex.split(GALLERY[picture])
    if program == "demur":
        done = run_in(made, *words)
    else:
        done = subprocess.run(
            [sys.executable, *words[:-1], made / "plot.svg"], cwd=ROOT, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    assert_looks_alike(made / "plot.svg", picture)


def assert_looks_alike(drawn: Path, picture: str) -> None:
    """A figure is that of the docs, but for the last digits of its numbers."""
    found, shown = (
        re.split(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)", one.read_text(encoding="utf-8"))
        for one in (drawn, ROOT / "docs" / "images" / picture)
    )
    assert found[::2] == shown[::2], f"{picture} is out of date: run `make docs`"
    numbers = [[float(number) for number in one[1::2]] for one in (found, shown)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-6, abs=1e-6), f"{picture} is out of date: run `make docs`"


@pytest.mark.parametrize("picture", sorted({*GALLERY} - {*REDRAWN}))
def test_a_command_of_the_gallery_has_options_that_there_are_and_names_a_figure(picture: str) -> None:
    program, *words = shlex.split(GALLERY[picture])
    assert program == "demur"
    command = command_of(words)
    options = {name: words[place + 1 : place + 2] for place, name in enumerate(words) if name.startswith("-")}
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    assert not {*options} - known
    assert "-o" in options
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    for figure in (name.partition(":")[0] for name in options.get("--figure", [])):
        assert re.search(rf'"{figure}"|\b{figure}_chart\b', code), f"no figure is called {figure}"


TYPED_LINES = sorted(
    {
        re.split(r" +[>#] ?", line)[0]
        for page in [ROOT / "README.md", *PAGES]
        for language in ("sh", "bash")
        for block in blocks(language, page.read_text(encoding="utf-8"))
        for line in block.splitlines()
        if line.startswith("demur ") and not line.startswith("demur --")
    }
)
"""The lines of shell blocks that show no output."""


@pytest.mark.parametrize("line", TYPED_LINES)
def test_a_line_of_a_shell_block_has_a_command_and_options_that_there_are(line: str) -> None:
    words = shlex.split(line)[1:]
    command = command_of(words)
    assert not hasattr(command, "commands")
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    assert not {word for word in words if word.startswith("--")} - known


@pytest.mark.parametrize("line", [line for line in TYPED_LINES if line in read_page("figures")])
def test_the_lines_of_the_page_on_figures_run(folder: Path, wizards: Path, line: str) -> None:
    made = wizards if " trials.csv " in line else folder
    done = inside(at_fewer_draws(line), made)
    assert done.returncode == 0, done.stderr


def command_of(words: list[str]) -> Any:
    """The command that the first words name."""
    import typer

    from demur.apps.cli.app import app_of

    found: Any = typer.main.get_command(app_of())
    for word in words:
        if not hasattr(found, "commands"):
            break
        found = found.commands[word]
    return found


def test_the_page_on_figures_names_every_figure_and_no_other() -> None:
    rows = [line.split("|")[1] for line in read_page("figures").splitlines() if line.startswith("| ")]
    listed = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    questions = ("returns", "nbest_lists", "outcome", "gold_standard")
    files = [file for question in questions for file in (ROOT / "src" / "demur" / question).rglob("*.py")]
    code = "".join(file.read_text(encoding="utf-8") for file in files)
    assert listed <= set(re.findall(r"def ([a-z_]+)_chart\(", code))
    assert set(re.findall(r'[."]([a-z_]+)_chart"', code)) - listed <= {"bare_curve", "bare_reading", "smooth"}


@pytest.mark.parametrize("name", ["measures", "python"])
def test_the_examples_of_a_reference_run_when_they_are_pasted_after_its_imports(name: str, tmp_path: Path) -> None:
    page = read_page(name)
    imported: dict[str, Any] = {}
    exec(blocks("python", page)[0], imported)
    runner = doctest.DocTestRunner(verbose=False)
    with chdir(tmp_path):
        for example in blocks("pycon", page):
            runner.run(doctest.DocTestParser().get_doctest(example, dict(imported), name, name, 0))
    assert runner.summarize().failed == 0


def test_the_readmes_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make (\w+)", "\n".join(blocks("sh")), re.MULTILINE)
    assert targets == ["demo", "test"]
    assert len(README.splitlines()) < 160
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_ci_runs_the_readmes_test_command() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + list(PAGES)
    for page in pages:
        for link, place in re.findall(r"\]\(([^)#\s]*)(?:#([^)]+))?\)", page.read_text(encoding="utf-8")):
            if not link.startswith(("http:", "https:")):
                target = page.parent / link if link else page
                assert target.exists(), f"{page.name} links to {link}"
                if place and target in pages:
                    assert place in places_in(target), f"{page.name} links to {link}#{place}"


def places_in(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    named = set(re.findall(r'^<a id="([\w-]+)"></a>$', prose, re.MULTILINE))
    return named | {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", one.lower()).strip()) for one in headings}


def test_every_page_is_in_the_navigation_and_only_references_are_long() -> None:
    parts = {kind: re.findall(r'"([\w-]+)\.md"', json.dumps(pages)) for kind, pages in navigation().items()}
    assert sorted(name for names in parts.values() for name in names) == sorted(one.stem for one in PAGES)
    long = [one.stem for one in PAGES if words_of(one.read_text(encoding="utf-8")) > MOST_WORDS]
    assert set(long) <= {*parts["Reference"]}


def test_a_page_is_called_in_the_menu_as_in_its_heading() -> None:
    """The menu's name is the title of the browser's window, where nothing else says what it is of."""
    labels = re.findall(r'"([^"]+)": "([\w-]+)\.md"', json.dumps(navigation()))
    labels = [(label, name) for label, name in labels if name != "index"]
    assert len(labels) > 70
    for label, name in labels:
        heading = re.search("^# (.*)$", read_alone(name), re.MULTILINE)[1]
        assert stems(label) & stems(heading), f"{name}.md: {label!r} for {heading!r}"


def read_alone(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def stems(title: str) -> set[str]:
    return {word[:5].lower() for word in re.findall(r"\w+", title) if len(word) > 3 or word.isupper()}


def words_of(page: str) -> int:
    """The words that one reads; rows of tables with three numbers or more are looked up."""
    rows = re.findall(r"^\|(.*)\|$", page, re.MULTILINE)
    numbers = [row for row in rows if sum(bool(re.match(r" *[-+*]*\.?\d", cell)) for cell in row.split("|")) >= 3]
    return len(page.split()) - sum(len(f"|{row}|".split()) for row in numbers)


def navigation() -> dict[str, Any]:
    """The parts of the navigation with their pages."""
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    return {kind: pages for entry in nav for kind, pages in entry.items()}


def test_what_is_copied_from_a_console_block_has_no_prompt_and_no_output() -> None:
    """The site hides prompts (.gp) and output (.go) while its button copies a block."""
    project = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    (style,) = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in project["extra_css"])
    assert re.search(r"\[data-md-copying\] \.gp,\s+\[data-md-copying\] \.go \{\s+display: none;", style)


@pytest.mark.parametrize("words", ["AURC", "abstention", "rejection", "selective prediction", "fallback threshold"])
def test_the_words_of_the_field_are_on_pages(words: str) -> None:
    """Pages that explain, not only those that follow from the code."""
    assert any(words in one.read_text(encoding="utf-8") for one in PAGES if one.stem in ("glossary", "threshold"))


def test_the_words_of_the_field_are_headings_which_the_search_ranks_first() -> None:
    headings = " ".join(re.findall(r"^## (.*)$", read_page("glossary"), re.MULTILINE)).lower()
    assert all(words in headings for words in ("abstention", "rejection", "selective prediction", "fallback threshold"))


def test_the_page_on_decisions_has_the_rates_of_false_differences_that_were_simulated() -> None:
    table = read_page("coverage").partition("<!-- table: nothing -->")[2].partition("**highest**")[0]
    rates = sorted(line.split("|")[6].strip().removeprefix("0") for line in table.splitlines() if "aired" in line)
    said = f"{rates[0]} to {rates[-2]}, and {rates[-1]} in one row of {len(rates)}"
    assert said in read_page("statistics_decisions")


def test_generated_pages_are_current() -> None:
    code = "from docs.generate import pages; import json; print(json.dumps({str(p): t for p, t in pages().items()}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for path, text in json.loads(done.stdout).items():
        assert Path(path).read_text(encoding="utf-8") == text, f"{path} is out of date: run `make docs`"
