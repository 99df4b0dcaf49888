"""Two judges and their lead in real browsers: from the links to adjudicated labels and kappa."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import demur
from browser.audit import audit_looks, serious_faults
from judges.judged import begun, serve_judging
from serving import ServedFolder

QUESTIONS = [("2 + 2?", "4"), ("Capital of France?", "Paris"), ("Largest planet?", "<b>Saturn</b>"), ("3 x 3?", "6"),
             ("Colour of snow?", "white"), ("Legs of a spider?", "eight")]  # fmt: skip
WRONG = {"<b>Saturn</b>", "6"}
DISPUTED = "eight"


@pytest.fixture(scope="module")
def judging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFolder]:
    """Six answers of a system that two judges both judge."""
    folder = tmp_path_factory.mktemp("judging")
    rows = [
        {"id": f"q{place}", "system": "secret-system", "input": asked, "prediction": said, "confidence": 0.123}
        for place, (asked, said) in enumerate(QUESTIONS)
    ]
    begun(folder, rows, overlap=1.0).close()
    with ServedFolder(serve_judging, folder / "log.judging", 0, "Lead") as served:
        yield served


def judge_all(page: Any, say: Callable[[str], str]) -> None:
    for done in range(len(QUESTIONS)):
        page.locator("#count", has_text=f"{done} of 6 judged").wait_for()
        page.keyboard.press(say(page.locator("#item .answer dd").inner_text()))
    page.get_by_text("All your answers are judged").wait_for()


def test_two_judges_to_settled_labels_and_kappa(judging: ServedFolder, open_page: Callable[..., Any]) -> None:
    anna, ben, lead = open_page(), open_page(), open_page()
    anna.goto(judging.links["anna"])
    shown = anna.content()
    assert "secret-system" not in shown
    assert "0.123" not in shown
    audit_looks(anna)
    anna.keyboard.press("u")
    anna.get_by_text("Last: unsure").wait_for()
    anna.keyboard.press("z")
    judge_all(anna, lambda said: "w" if said in WRONG else "r")
    anna.reload()
    anna.get_by_text("All your answers are judged").wait_for()
    ben.goto(judging.links["ben"])
    judge_all(ben, lambda said: "2" if said in WRONG | {DISPUTED} else "1")

    lead.goto(next(link for name, link in judging.links.items() if name.startswith("Lead")))
    found = demur.agreement(judging.folder, replicates=50).agreement
    kappa = found.figures["cohen_kappa"].value
    assert kappa == pytest.approx((5 / 6 - 1 / 2) / (1 - 1 / 2)), "5 of 6 agree, 3 by chance: 4 x 3 + 2 x 3 of 36"
    lead.get_by_text(f"{kappa:.2f}").first.wait_for()
    audit_looks(lead)
    lead.click("text=Settle disagreements")
    assert lead.locator("#item .answer dd").inner_text() == DISPUTED
    lead.fill("#note", "spiders have eight legs")
    assert serious_faults(lead) == []
    lead.click("#labels [data-label=right]")
    lead.get_by_text("Every disagreement is settled").wait_for()
    lead.locator("#settled td", has_text="spiders have eight legs").wait_for()
    audit_looks(lead)
    rows = [json.loads(line) for line in lead.request.get(f"{judging.base}/judged.jsonl").text().splitlines()]
    assert {row["prediction"]: row["correct"] for row in rows} == {said: said not in WRONG for _, said in QUESTIONS}
    assert [one["judge"] for one in rows[-1]["judgements"]] == ["anna", "ben", "lead"]


def test_a_judge_sees_neither_the_lead_nor_another_judge(judging: ServedFolder, open_page: Callable[..., Any]) -> None:
    page = open_page(expecting="403")
    page.goto(judging.links["anna"])
    assert page.goto(f"{judging.base}/overview").status == 403
    assert serious_faults(page) == []
