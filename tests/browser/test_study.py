"""A whole study in real browsers: participant and wizard side by side, from consent to export and benchmark graph."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import demur
from browser.audit import audit_looks, serious_faults
from demur.study.demo import SimulatedStudy, write_simulated
from demur.study.design import read_design
from demur.study.export import StudyRecord, turns_of
from demur.study.folder import new_folder
from demur.study.pairing import plan_for
from study.designs import SMALL, write_small
from study.serving import Served

QUICK = {"delay = 5.0": "delay = 0.5", "connect = 1.0": "connect = 0.2", 'names = ["you"]': 'names = ["you", "other"]'}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A study in which simulated people have been, and whose next participant meets a wizard first."""
    folder = tmp_path_factory.mktemp("studies") / "museum"
    new_folder(folder, alone=True)
    text = (folder / "study.toml").read_text(encoding="utf-8")
    for old, new in QUICK.items():
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    design = read_design(folder)
    before = next(
        count
        for count in range(8, 30)
        if [one[0] for one in plan_for(design, count, {})] == ["wizard", "guide"] and plan_for(design, count, {})[0][1]
    )
    write_simulated(folder, SimulatedStudy(folder, design, 1).run(before))
    with Served(folder) as served:
        yield served


def test_a_study_from_consent_to_export_and_benchmark_graph(study: Served, open_page: Callable[..., Any]) -> None:
    wizard, participant, watcher = open_page(), open_page(), open_page()
    wizard.goto(study.links["Wizard you"])
    watcher.goto(study.links["Experimenter"])
    if not wizard.locator("#available").is_checked():
        wizard.check("#available")

    participant.goto(study.links["Participants"])
    assert serious_faults(participant) == []
    participant.click("#join")
    participant.wait_for_selector("text=Before you begin")
    assert serious_faults(participant) == []
    participant.click("text=I agree")
    participant.check("text=now and then")
    assert serious_faults(participant) == []
    participant.click("text=Continue")

    participant.click("text=Start the conversation")
    participant.fill("#text", "<b>when</b> do you open on sunday")
    participant.press("#text", "Enter")
    wizard.wait_for_selector("#heard:not([hidden])")
    heard = wizard.locator("#heard").inner_text()
    assert "<b>" not in heard, "what is typed reaches a wizard only as the recogniser would write it"
    wizard.keyboard.press("c")
    wizard.select_option("#slot-topic", "opening hours")
    audit_looks(wizard)
    wizard.click("#slots button.main")
    participant.wait_for_selector("text=Did you ask about opening hours?")
    assert participant.locator(".lines .you").inner_text() == "<b>when</b> do you open on sunday"
    audit_looks(participant)

    participant.reload()
    participant.fill("#text:not([disabled])", "yes when")
    participant.press("#text", "Enter")
    wizard.wait_for_selector("#heard:not([hidden])")
    wizard.reload()
    wizard.wait_for_selector("#heard:not([hidden])")
    wizard.fill("#search", "sunday")
    wizard.press("#search", "Enter")
    participant.wait_for_selector("text=We open at ten o'clock")
    _report(participant, "11 am", audit=True)

    participant.click("text=Start the conversation")
    participant.fill("#text:not([disabled])", "tell me more")
    participant.press("#text", "Enter")
    participant.locator(".lines .guide:not(.typing)").nth(1).wait_for()
    _report(participant, "I do not know")

    participant.wait_for_selector("text=Some last questions")
    participant.click("text=Continue")
    code = participant.locator(".code").inner_text()
    watcher.wait_for_selector(f"text={code}")
    watcher.click("#draw")
    watcher.wait_for_selector("#benchmark:not([hidden]) img")
    watcher.locator("#benchmark img").evaluate("(image) => image.decode()")
    assert watcher.locator("#benchmark img").evaluate("(image) => image.naturalWidth") > 100
    audit_looks(watcher)

    folder = study.folder
    wrong = [one.rule for one in demur.check_study(folder).findings if not one.holds]
    assert wrong == ["answers take as long with every performer"], "half a second is too short for wizards"
    exported = demur.export_study(folder, identifiers="hash")
    assert any(name.endswith("trials.csv") for name in exported.files)
    last = list(StudyRecord.of(folder).state.talks.values())[-2:]
    assert [(talk.wizard, talk.why, len(talk.exchanges)) for talk in last] == [
        ("you", "finished", 2),
        ("", "finished", 1),
    ]


def _report(page: Any, answer: str, *, audit: bool = False) -> None:
    page.click("text=End the conversation")
    page.locator("input[name=task-answer]").last.wait_for()
    if audit:
        audit_looks(page)
    chosen = page.locator(f'input[name=task-answer][value="{answer}"]')
    (chosen if chosen.count() else page.locator("input[name=task-answer]").last).check()
    page.locator("input[name=q-understood]").nth(3).check()
    page.click("text=Continue")


def test_a_second_window_takes_over_and_leaving_ends_it(study: Served, open_page: Callable[..., Any]) -> None:
    first = open_page()
    first.goto(study.links["Participants"])
    first.click("#join")
    first.wait_for_selector("text=Before you begin")
    second = first.context.new_page()
    second.goto(f"{study.base}/participant")
    second.wait_for_selector("text=Before you begin")
    first.wait_for_selector("text=This page was opened in another window")
    second.click("#leave")
    second.click("#leave-now")
    second.wait_for_selector("text=You have left the study")
    second.close()


def test_a_cut_of_the_network_loses_nothing_and_doubles_nothing(study: Served, open_page: Callable[..., Any]) -> None:
    context = open_page().context.browser.new_context()  # of somebody who has not been here
    page = context.new_page()
    sockets: list[Any] = []
    cut: list[bool] = []

    def route(socket: Any) -> None:
        if cut:
            socket.close()
            return
        socket.connect_to_server()
        sockets.append(socket)

    page.route_web_socket("**/ws/participant", route)
    page.goto(study.links["Participants"])
    page.click("#join")
    page.wait_for_selector("text=Before you begin")
    cut.append(True)
    sockets[0].close()
    page.wait_for_selector("text=The connection is lost")
    page.click("text=I agree")
    cut.clear()
    page.wait_for_selector("text=A few questions")
    assert len(sockets) > 1
    context.close()
    record = StudyRecord.of(study.folder)
    person = list(record.state.participants)[-1]
    assert [event.kind for event in record.events if event.person == person].count("consented") == 1


RECOGNISER = json.dumps([sys.executable, "-c", "print('when open')", "{wav}"])
SYSTEM = 'kind = "python"\ncall = "echo:answer"\n'
SPOKEN = {
    'kind = "wizard"\n': SYSTEM,
    'kind = "relevance"\npairs = "pairs.jsonl"\n': SYSTEM,
    "[0.0, 0.4]": f'[0.0]\nby = "speech"\nrecogniser = {RECOGNISER}',
    "delay = 4.0": 'delay = 0.0\noutput = "speech"',
    "connect = 2.0": "connect = 0.0",
}
LISTEN = "() => { window.spoken = []; speechSynthesis.speak = (one) => { window.spoken.push(one.text); }; }"


def test_what_is_spoken_is_recognised_and_answers_are_spoken(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    text = SMALL
    for old, new in SPOKEN.items():
        text = text.replace(old, new)
    folder = write_small(tmp_path / "small", text)
    (folder / "echo.py").write_text("def answer(conversation):\n    return 'Yes.'\n", encoding="utf-8")
    with Served(folder) as served:
        page = open_page()
        page.goto(served.links["Participants"])
        page.click("#join")
        page.wait_for_selector("text=Before you begin")
        page.evaluate(LISTEN)
        page.click("text=I agree")
        page.click("text=Start the conversation")
        page.click("#record:not([disabled])")
        page.wait_for_selector("text=Stop and send")
        page.click("#record")
        page.locator(".lines .guide", has_text="Yes.").wait_for()
        assert page.evaluate("window.spoken") == ["Hello.", "Yes."]
    record = StudyRecord.of(folder)
    (talk,) = record.state.talks.values()
    assert talk.exchanges[0].heard["text"] == "when open"
    (recording,) = (folder / "audio").iterdir()
    assert turns_of(record)["audio"].to_list() == [f"audio/{recording.name}"]
    assert recording.read_bytes()[:4] == b"RIFF"
    assert recording.parent.stat().st_mode & 0o077 == 0, "nobody else hears what people say"
