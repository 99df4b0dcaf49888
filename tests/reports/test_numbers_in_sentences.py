"""Every number in the sentences of a result is one of its JSON document, rounded: a page contradicts nothing."""

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

import demur
from demur.core.show.numbers import rounded_up
from demur.core.show.presentation import Presentation
from demur.returns.presentation import of_choice, of_comparison, of_scores

NUMBER = re.compile(r"(?P<before>p < |)(?<![\w.])(?P<sign>[-+−]?)(?P<digits>\d[\d,]*(?:\.\d+)?)(?P<percent> ?%)?")
THRESHOLD = re.compile(r"(?:confidence is at least|[Rr]ecommended threshold(?: for \w+)?:|are shown at) ([\d.]*\d)")
LONG = ("path", "cost_path", "every_two", "curve", "examples", "slices", "files", "made", "signature")
"""Parts of documents that no sentence is about, or with so many numbers that any would be found there."""
CONSTANTS = ("0 random, 1 perfect", "95 % of those in scope", "add --delta 0.05")


def leaves(document: Any) -> Iterator[float]:
    """The numbers of a document, also those in its texts, such as a rule."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key not in (*LONG, "verdict", "notes", "warnings"):
                yield from leaves(value)
            if key == "delta" and value is not None:
                yield 1 - value  # the confidence of a promise
    elif isinstance(document, list):
        for value in document:
            yield from leaves(value)
    elif isinstance(document, str):
        yield from (float(found) for found in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", document))
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield float(document)


def is_found(match: re.Match[str], known: list[float]) -> bool:
    """Whether a number of a sentence is one of the document, rounded alike; differences may be in points."""
    digits = match["digits"].rstrip(",")
    decimals = len(digits.partition(".")[2])
    said = float(digits.replace(",", ""))
    if match["before"]:
        return any(value < said for value in known)
    scale = 100 if match["percent"] or " points" in match.string else 1
    values = [unit * abs(value) for value in known for unit in {scale, 100 if match["percent"] else 1}]
    near = 0.5 * 10**-decimals + 1e-9
    return any(abs(value - said) <= near for value in values) or any(
        digits == rounded_up(round(value)) for value in known if value == int(value)
    )


def plain_sentences(shown: Presentation | tuple[str, ...], names: list[str]) -> list[str]:
    """The sentences without names, which may hold digits, and without what is always said."""
    sentences = shown.sentences if isinstance(shown, Presentation) else shown
    return [re.sub("|".join(map(re.escape, (*names, *CONSTANTS))), "", one) for one in sentences]


@pytest.fixture(scope="module")
def results(tables: dict[str, list[dict[str, Any]]]) -> dict[str, tuple[tuple[str, ...], dict[str, Any]]]:
    """Sentences and documents of results on one, two and three systems, one of which withholds by itself."""
    base, better, shy = tables.values()
    quick: Any = {"replicates": 60}
    two, three = demur.compare(base, better, **quick), demur.compare(base, better, shy, **quick)
    scores = demur.score(base, better, shy, **quick)
    shown = {
        "score": (of_scores(scores).sentences, scores.to_dict()),
        "compare two": (of_comparison(two).sentences, two.to_dict()),
        "compare late": (of_comparison(late := demur.compare(base, shy, **quick)).sentences, late.to_dict()),
        "compare three": (of_comparison(three).sentences, three.to_dict()),
    }
    for name, aim in (
        ("promise", {"max_error": 0.2, "delta": 0.1}),
        ("limit", {"max_error": 0.2}),
        ("cost", {"cost_ratio": 0.3}),
        ("nonreturn", {"max_nonreturn": 0.3}),
    ):
        choice = demur.threshold(better, **aim)
        shown[f"threshold {name}"] = (of_choice(choice).sentences, choice.to_dict())
    for name, logs, target in (
        ("one", (better,), {"max_error": 0.25, "delta": 0.1}),
        ("three", (base, better, shy), {}),
        ("in vain", (base,), {"max_error": 0.0001, "delta": 0.05}),
    ):
        report = demur.report(*logs, **target, **quick)
        shown[f"report {name}"] = (report.verdict, report.to_dict())
    return shown


RESULTS = (
    *("score", "compare two", "compare late", "compare three"),
    *(f"threshold {name}" for name in ("promise", "limit", "cost", "nonreturn")),
    *(f"report {name}" for name in ("one", "three", "in vain")),
)


@pytest.mark.parametrize("name", RESULTS)
def test_every_number_in_a_sentence_is_in_the_document(
    results: dict[str, Any], tables: dict[str, list[dict[str, Any]]], name: str
) -> None:
    sentences, document = results[name]
    known = list(leaves(document))
    confidences = [row["confidence"] for rows in tables.values() for row in rows if row["confidence"] is not None]
    for sentence in plain_sentences(sentences, list(tables)):
        for printed in map(float, THRESHOLD.findall(sentence)):
            kept = sum(one >= printed for one in confidences)  # as few digits as split the answers the same way
            assert any(kept == sum(one >= value for one in confidences) for value in known), sentence
        for match in NUMBER.finditer(THRESHOLD.sub("", sentence)):
            assert is_found(match, known), f"{match[0]!r} of {sentence!r} is not in the document of {name}"


@pytest.mark.parametrize("name", RESULTS)
def test_a_number_at_random_would_seldom_pass(results: dict[str, Any], name: str) -> None:
    known, rng = list(leaves(results[name][1])), random.Random(0)
    drawn = [NUMBER.search(f"{100 * rng.random():.1f} %") for _ in range(500)]
    assert sum(is_found(match, known) for match in drawn if match) < 0.35 * len(drawn)
