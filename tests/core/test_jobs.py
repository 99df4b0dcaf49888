"""An option is declared once: its range, choices, text and flag hold for Python, the command line and forms."""

import __future__

import inspect
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from demur.apps.cli.app import COMMANDS
from demur.core.jobs import (
    REQUIRED,
    Argument,
    Job,
    Option,
    check_values,
    fields_of,
    job,
    load,
    parameters,
    values_of,
    with_flags,
)
from demur.core.options import Level, Replicates, Sampling, Where, is_rising_range, range_text, rate_or_range
from demur.errors import DataError, UsageError


@job
def fit(
    model: Annotated[str, Argument("A model.", metavar="MODEL")],
    *turns: Annotated[Any, Argument("Logs.")],
    x: Annotated[str, Option("A column.")],
    kind: Annotated[Literal["linear", "spline"] | None, Option("A curve.")] = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    where: Where = (),
    region: Annotated[
        tuple[float, float],
        Option("A range.", parse=rate_or_range, check=is_rising_range, takes="a range", write=range_text),
    ] = (0.0, 1.0),
    target: Annotated[Path | None, Option("A file.")] = None,
    checks: Annotated[bool, Option("Whether to check.", flag="--checks/--no-checks")] = True,
    step: Any = None,
) -> dict[str, Any]:
    """Fit a model.

    In Python only.
    """
    others = (model, x, kind, replicates, region, target, checks, step)
    return {"turns": turns, "level": level, "where": where, "others": others}


def parameter(name: str) -> Any:
    return {one.name: one for one in parameters(fit)}[name]


def test_what_is_annotated_is_offered_and_the_rest_belongs_to_python() -> None:
    assert [one.name for one in parameters(fit)] == [
        *("model", "turns", "x", "kind", "level", "replicates", "where", "region", "target", "checks"),
    ]
    assert parameter("turns").several
    assert not parameter("model").several
    assert parameter("x").default is REQUIRED
    assert parameter("kind").choices == ("linear", "spline")
    assert (parameter("target").type, parameter("target").flag) == (Path, "--target")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "below the range": ({"replicates": 3}, "`replicates` must be at least 50 and at most 100000; got 3"),
    "at an open end": ({"level": 1}, "`level` must be above 0 and below 1; got 1"),
    "not a number": ({"level": float("nan")}, "`level` must be above 0 and below 1; got nan"),
    "text for a number": ({"level": "high"}, '`level` takes a number; got "high"'),
    "a fraction for a count": ({"replicates": 50.5}, "`replicates` takes a whole number; got 50.5"),
    "a flag for a number": ({"replicates": True}, "`replicates` takes a whole number; got True"),
    "no choice": ({"kind": "cubic"}, '`kind` is one of linear, spline; got "cubic"'),
    "no range": ({"region": (0.3, 0.1)}, r"`region` takes a range; got \(0.3, 0.1\)"),
    "no pairs": ({"where": "split=test"}, r'`where` takes \(column, value\) pairs, such as .*; got "split=test"'),
    "a slip": ({"levle": 0.9}, 'there is no option "levle" here. Did you mean "level"?'),
}


@pytest.mark.parametrize("case", WRONG)
def test_python_refuses_what_is_out_of_range(case: str) -> None:
    given, message = WRONG[case]
    with pytest.raises(UsageError, match=message):
        fit("m.json", x="wer", **given)


def test_python_takes_what_is_in_range() -> None:
    made = fit("m.json", "a", "b", x="wer", kind=None, level=0.9, where=(("split", "test"),))
    assert made["turns"] == ("a", "b")
    assert (made["level"], made["where"]) == (0.9, (("split", "test"),))
    check_values(fit, {"region": (0.1, 0.3), "replicates": 50})


def test_a_form_has_a_field_for_each_option() -> None:
    fields = {one.name: one for one in fields_of(fit)}
    assert list(fields) == [one.name for one in parameters(fit) if isinstance(one.option, Option)]
    kinds = {name: one.kind for name, one in fields.items()}
    assert kinds == {
        "x": "text",
        "kind": "choice",
        "level": "number",
        "replicates": "whole",
        "where": "texts",
        "region": "text",
        "target": "text",
        "checks": "check",
    }
    assert (fields["level"].above, fields["level"].below, fields["level"].default) == (0, 1, "0.95")
    assert (fields["region"].default, fields["checks"].default, fields["x"].required) == ("0:1", True, True)


def test_what_a_form_sends_becomes_python_values() -> None:
    sent = {
        "level": ["0.9"],
        "where": ["split=test", "noise=a=b"],
        "region": ["10%:0.3"],
        "checks": ["on"],
        "kind": [""],
    }
    assert values_of(fit, sent) == {
        "level": 0.9,
        "where": (("split", "test"), ("noise", "a=b")),
        "region": (0.1, 0.3),
        "checks": True,
    }
    for text, message in (
        ("x", '`level` takes a number; got "x"'),
        ("2", "`level` must be above 0 and below 1; got 2"),
    ):
        with pytest.raises(UsageError, match=message):
            values_of(fit, {"level": [text]})
    with pytest.raises(UsageError, match='`where` takes COLUMN=VALUE; got "split"'):
        values_of(fit, {"where": ["split"]})
    with pytest.raises(UsageError, match='`checks` takes true or false; got "maybe"'):
        values_of(fit, {"checks": ["maybe"]})


def test_defaults_are_typed_as_texts_that_parse_to_them() -> None:
    for one in parameters(fit):
        if one.text is not None:
            assert one.parsed(one.text) == one.default


def test_the_help_of_a_job_is_the_first_paragraph_of_its_docstring() -> None:
    made = Job("outcome fit", fit, present="demur.errors:DataError", example="demur outcome fit m.json")
    assert made.help == "Fit a model."
    assert made.takes("step")
    assert load(made.present) is DataError


def test_messages_get_flags_in_place_of_options() -> None:
    fault = DataError("must be a number; `level` and `other`", where="a.csv:1")
    assert str(with_flags(fault, {"level": "--level"})) == "a.csv:1 must be a number; --level and `other`"


def test_sampling_says_what_was_drawn() -> None:
    assert Sampling(replicates=2000, seed=3).note == "seed 3, 2,000 replicates"


def test_annotations_of_jobs_are_not_postponed_as_their_options_are_read_from_them() -> None:
    functions = [job.function for jobs, _ in COMMANDS for job in jobs]
    postponed = [
        one.__name__
        for one in functions
        if inspect.unwrap(one).__code__.co_flags & __future__.annotations.compiler_flag
    ]
    assert postponed == []
