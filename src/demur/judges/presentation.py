"""How far judging is and how far judges agree, as sentences and tables, and the judged log as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from demur.core.io.columns import resolve
from demur.core.io.files import read_source
from demur.core.io.tables import Cells, Request
from demur.core.io.writing import write_rows, write_table
from demur.core.show.numbers import Wording, listed, percent
from demur.core.show.presentation import Presentation, ResultTable
from demur.core.show.results import in_few_lines
from demur.core.stats.intervals import Figure
from demur.errors import DataError, UsageError
from demur.importers.reading import opened
from demur.judges.agreement import ALPHA, COHEN, FLEISS, OBSERVED, Agreement, Coefficient, Ratings, agreement
from demur.judges.session import STATES, Judging

JUDGEMENT_ALIASES = {
    "item": ("id", "answer"),
    "judge": ("annotator", "coder", "rater"),
    "label": ("judgement", "rating", "annotation"),
}
"""The columns of a table of judgements, one a row, each with the other names it may go by."""

ENOUGH, TENTATIVE = 0.8, 0.667
"""What Krippendorff (2004) asks of alpha: for conclusions, and for tentative ones."""

ANSWERS = Wording("answer", "answers")
_MEASURES = (OBSERVED, COHEN, FLEISS, ALPHA)


@dataclass(frozen=True, slots=True)
class JudgeProgress:
    """How far one judge is, and which labels the judge gave how often."""

    judge: str
    judged: int
    of: int
    labels: dict[str, int]


@dataclass(frozen=True, slots=True)
class SampleProgress:
    """How many inputs the log has, how many were drawn or are known already, and how many of them are judged."""

    inputs: int
    drawn: int
    judged: int
    strata: int


@dataclass(frozen=True, eq=False, repr=False)
class JudgedAnswers:
    """What judges said: how far each is, how far they agree, what is open; of a folder also the log of it."""

    source: str
    judges: tuple[JudgeProgress, ...]
    agreement: Agreement
    states: dict[str, int] | None = None
    """How many answers are agreed on, settled, open and pending; None for a table of judgements."""
    labels: dict[str, int] | None = None
    sample: SampleProgress | None = None
    rows: Callable[[], Iterable[dict[str, Any]]] | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, judging: Judging, **how: Any) -> JudgedAnswers:
        """What judges said so far in a folder, all of it at one moment."""
        with judging.at_rest():
            states, plan, ratings = judging.states(), judging.plan, judging.ratings()
            progress = tuple(
                JudgeProgress(judge, done, total, {name: labels[name] for name in plan.labels.names})
                for judge, done, total, labels in judging.progress()
            )
            weights, numbers = judging.weights()
            outcomes, warnings = judging.outcomes(), tuple(_warnings(judging))
        return cls(
            str(judging.journal.folder),
            progress,
            agreement(ratings, **how),
            {name: states[name] for name in STATES},
            {name: outcomes[name] for name in plan.labels.names},
            SampleProgress(plan.inputs, len(numbers), int((weights.weight > 0).sum()), len(plan.sizes)),
            lambda: list(judging.judged_rows()),
            warnings=warnings,
        )

    def __repr__(self) -> str:
        return in_few_lines("JudgedAnswers", list(sentences_of(self)))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; `rows` has the judged log."""
        judges = [{"judge": one.judge, "judged": one.judged, "of": one.of, "labels": one.labels} for one in self.judges]
        found: dict[str, Any] = {"source": self.source, "judges": judges}
        if self.states is not None:
            found |= {"answers": self.states, "labels": self.labels}
        if self.sample is not None:
            found["sample"] = asdict(self.sample)
        found |= {"agreement": self.agreement.to_dict(), "notes": list(self.notes), "warnings": list(self.warnings)}
        return found

    def frame(self) -> pl.DataFrame:
        """The measures of agreement as a table: of all judges, then of every two."""
        figures = [("all judges", self.agreement.n, name, figure) for name, figure in self.agreement.figures.items()]
        for pair in self.agreement.pairs:
            both = " and ".join(pair.judges)
            figures += [(both, pair.n, "observed", pair.observed), (both, pair.n, "cohen_kappa", pair.kappa)]
        rows = [{"judges": who, "n": n, "measure": name, **_ends(figure)} for who, n, name, figure in figures]
        return pl.DataFrame(rows, infer_schema_length=None)


def _ends(figure: Figure) -> dict[str, float | None]:
    return {name: value for name, value in figure.to_dict().items() if name != "why"}


def _warnings(judging: Judging) -> Iterator[str]:
    states, plan = judging.states(), judging.plan
    if states["pending"]:
        count = ANSWERS.with_count(states["pending"])
        yield f"{count} not judged yet: the log stands on what is judged, and counts it for the rest"
    if states["open"]:
        yield f"{ANSWERS.with_count(states['open'])} on which judges disagree: left out until settled"
    outcomes = judging.outcomes()
    unsure = sum(outcomes[one.name] for one in plan.labels.labels if one.means == "unsure")
    if unsure:
        yield f"{ANSWERS.with_count(unsure)} that judges cannot tell: left out, never wrong"


def read_judged(source: str | Path, **how: Any) -> JudgedAnswers:
    """What judges said, from the folder of a judging or from a table of judgements: item, judge and label."""
    if Path(source).is_dir():
        return JudgedAnswers.of(Judging.open(Path(source)), **how)
    ratings = read_ratings(source)
    counts = [
        {name: int((column == code).sum()) for code, name in enumerate(ratings.labels)} for column in ratings.codes.T
    ]
    items = ratings.codes.shape[0]
    progress = [
        JudgeProgress(judge, sum(labels.values()), items, labels)
        for judge, labels in zip(ratings.judges, counts, strict=True)
    ]
    return JudgedAnswers(str(source), tuple(progress), agreement(ratings, **how))


def read_ratings(source: str | Path) -> Ratings:
    """The judgements of a table, one a row; rows of one item and judge are refused."""
    with opened(source) as files:
        if len(files) > 1:
            raise UsageError(f"one table of judgements is read at a time; {source} stands for {len(files)} files")
        table = read_source(files[0], Request())
    found = resolve(table.columns, {}, aliases=JUDGEMENT_ALIASES, where=f"{table.name}:")
    for part in JUDGEMENT_ALIASES:
        if part not in found.columns:
            there = f"columns there: {', '.join(table.columns)}"
            raise DataError(f"has no column {part}: a row is one judgement", where=table.name, fix=there)
    cells = Cells(table, found.columns)
    frame = pl.DataFrame([cells.text(part).alias(part) for part in JUDGEMENT_ALIASES]).with_row_index("place")
    for part in ("item", "judge"):
        if (empty := frame.filter(pl.col(part).is_null())).height:
            raise cells.fault(part, int(empty["place"][0]), "must be there in every row", got="null")
    given = frame.drop_nulls("label")
    twice = given.filter(pl.struct("item", "judge").is_duplicated())
    if twice.height:
        row = twice.row(1, named=True)
        raise cells.fault("judge", int(row["place"]), f'"{row["judge"]}" judged item "{row["item"]}" twice')
    if given.is_empty():
        raise DataError("holds no judgements", where=table.name)
    judges, labels = (sorted(given[name].unique()) for name in ("judge", "label"))
    wide = given.pivot("judge", index="item", values="label").select(judges)
    return Ratings.of([list(row) for row in wide.iter_rows()], judges, labels)


def write_judged(result: JudgedAnswers, path: Path) -> None:
    """Write the judged log in the format of the path's ending."""
    if result.rows is None:
        raise UsageError(f"-o {path}: a table of judgements has no log; name the folder of the judging")
    rows = list(result.rows())
    if path.name.lower().endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")):
        write_rows(path, rows)
    else:
        write_table(path, pl.DataFrame(rows, infer_schema_length=None, strict=False))


def of_judged(found: JudgedAnswers) -> Presentation:
    """How judgements are shown."""
    return Presentation(
        title="Judgements",
        sentences=tuple(sentences_of(found)),
        tables=tuple(_tables(found)),
        figures=(),
        data=found.frame,
        document=found.to_dict(),
        notes=found.notes,
        warnings=found.warnings,
    )


def sentences_of(found: JudgedAnswers) -> Iterator[str]:
    """How far judging is, and how far judges agree."""
    if found.states is not None:
        total, states = sum(found.states.values()), found.states
        done = total - states["pending"]
        yield f"{done:,} of {ANSWERS.with_count(total)} {'is' if total == 1 else 'are'} judged."
    if found.sample is not None and found.sample.drawn < found.sample.inputs:
        yield f"They were drawn from {found.sample.inputs:,} inputs, for which the judged log stands."
    figures = found.agreement.figures
    if not figures["observed"].defined:
        yield f"Agreement: {figures['observed'].why}."
        return
    both = [one for one in _MEASURES[1:] if one.name in figures]
    values = listed([f"{one.title} {value_text(figures[one.name])}" for one in both])
    judges = listed([one.judge for one in found.judges])
    shared = f"the {ANSWERS.with_count(found.agreement.n)} that two or more judged"
    yield f"{judges} agree on {share_text(figures['observed'])} of {shared}: {values}."
    yield from alpha_words(figures[ALPHA.name])


def alpha_words(alpha: Figure) -> Iterator[str]:
    """What alpha means for conclusions, by its interval."""
    if not alpha.defined or alpha.why is not None:
        return
    if alpha.low >= ENOUGH:
        yield f"Alpha lies above {ENOUGH:g}, which Krippendorff (2004) asks for."
    elif alpha.low >= TENTATIVE:
        asked = f"Alpha may lie below {ENOUGH:g}, which Krippendorff (2004) asks for, but not below {TENTATIVE:g}"
        yield f"{asked}: conclusions are tentative."
    else:
        low = f"Alpha may lie below {TENTATIVE:g}, too low even for tentative conclusions (Krippendorff 2004)"
        yield f"{low}: judge more answers twice, or say more in the guidelines."


def value_text(figure: Figure) -> str:
    """A coefficient with its interval."""
    if not figure.defined:
        return f"undefined ({figure.why})"
    value, low, high = (f"{round(end, 2) + 0.0:.2f}" for end in (figure.value, figure.low, figure.high))
    return value if figure.why else f"{value} ({low} to {high})"


def share_text(figure: Figure) -> str:
    """A share with its interval."""
    if not figure.defined:
        return f"undefined ({figure.why})"
    value = percent(figure.value)
    return value if figure.why else f"{value} ({percent(figure.low)} to {percent(figure.high)})"


def _tables(found: JudgedAnswers) -> Iterator[ResultTable]:
    names = list(found.judges[0].labels) if found.judges else []
    rows = [
        (one.judge, f"{one.judged:,} of {one.of:,}", *(f"{one.labels[name]:,}" for name in names))
        for one in found.judges
    ]
    yield ResultTable("Judges", ("judge", "judged", *names), tuple(rows))
    if found.states is not None and found.labels is not None:
        labels = [(name, f"{count:,}") for name, count in found.labels.items()]
        states = [(f"({name})", f"{found.states[name]:,}") for name in ("open", "pending") if found.states[name]]
        yield ResultTable("Answers in the end", ("label", "answers"), (*labels, *states))
    measures = [one for one in _MEASURES if one.name in found.agreement.figures]
    yield ResultTable(
        "Agreement", ("measure", "value"), tuple((one.title, _cell(one, found.agreement)) for one in measures)
    )
    if len(found.agreement.pairs) > 1:
        pairs = [
            (" and ".join(pair.judges), f"{pair.n:,}", share_text(pair.observed), value_text(pair.kappa))
            for pair in found.agreement.pairs
        ]
        yield ResultTable("Every two judges", ("judges", "both judged", "agreement", "Cohen's kappa"), tuple(pairs))


def _cell(measure: Coefficient, found: Agreement) -> str:
    figure = found.figures[measure.name]
    return share_text(figure) if measure is OBSERVED else value_text(figure)
