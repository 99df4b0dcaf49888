"""Evaluates and compares N-best lists: every measure with its interval, the parts of the ICE, what each utterance adds.

Systems are compared on every measure, paired by utterance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.acts import ItemSets
from demur.core.arrays import Array
from demur.core.io.columns import MOST_SLICES
from demur.core.io.tables import align, unpaired_note
from demur.core.options import Sampling
from demur.core.show.numbers import Wording
from demur.core.show.results import Results, Shown, Step, silent
from demur.core.stats.calibration import ECE, NCE, Reliability, cell_totals, reliability
from demur.core.stats.intervals import Difference, Figure, Scale, check_level, difference, unit_figure
from demur.core.stats.measure import Measure, TermMeasure, digest_of, signature
from demur.core.stats.resampling import Sample
from demur.errors import DataError, UsageError
from demur.nbest_lists.exploded import ExplodedLists, ListSource, UnitTotals, explode
from demur.nbest_lists.measures import FLOOR, ICE_PARTS, OF_ACTS, OF_ITEMS, PAPER_FLOOR
from demur.nbest_lists.table import NBest
from demur.returns.evaluate import Evaluation, evaluate, figure_of
from demur.returns.measures import AUROC

if TYPE_CHECKING:
    from demur.nbest_lists.recalibrate import Recalibrated
    from demur.nbest_lists.scales import TunedScale

NONE = "(none)"

NO_ITEM = "no reference and no hypothesis holds any item"


@dataclass(frozen=True, slots=True)
class NBestSettings(Sampling):
    """How lists are evaluated: the parameters of measures, and how uncertainty is computed."""

    floor: float | Literal["paper"] = FLOOR
    """The least probability that ICE, ACE and NCE look at; `paper` is `PAPER_FLOOR`."""
    clip: float | None = None
    """Another one for the NCE; None takes the floor."""

    @property
    def least(self) -> float:
        """The floor as a number."""
        return PAPER_FLOOR if self.floor == "paper" else self.floor

    @property
    def note(self) -> str:
        """What a result says of them."""
        paper = ", near which the tables of Thomson et al. (2008) fit" if self.floor == "paper" else ""
        floor = f"a floor of {self.least:g} under probabilities{paper}"
        if self.clip is None:
            return f"ICE, ACE and NCE with {floor}; NCE over what some hypothesis holds"
        return f"ICE and ACE with {floor}; NCE over what some hypothesis holds, with a floor of {self.clip:g}"

    @property
    def floor_words(self) -> str:
        """The floor as figures name it."""
        return f"floor {self.least:g}"

    def of_acts(self) -> dict[str, TermMeasure]:
        """The measures of acts with these parameters."""
        return {key: self._with(measure) for key, measure in OF_ACTS.items()}

    def of_items(self) -> dict[str, TermMeasure]:
        """The measures of items with these parameters; the calibration error is read from the items' sample."""
        return {key: self._with(measure) for key, measure in OF_ITEMS.items() if not isinstance(measure, ECE)}

    def parts(self) -> dict[str, Measure]:
        """The parts of the ICE with these parameters."""
        return {key: self._with(measure) for key, measure in ICE_PARTS.items()}

    def _with(self, measure: Any) -> Any:
        chosen = {"floor": self.least, "clip": self.least if self.clip is None else self.clip}
        return replace(measure, **{name: value for name, value in chosen.items() if hasattr(measure, name)})


@dataclass(frozen=True, eq=False, repr=False)
class NBestEvaluation(Shown):
    """What the N-best lists of one system show."""

    system: str
    part: str | None
    """The slice, as `column=value`; None for all utterances."""
    n: int
    reference_items: float
    given_out: float
    """Mean mass that lists give out."""
    empty: int
    """Utterances for which nothing was hypothesised."""
    figures: Mapping[str, Figure]
    parts: Mapping[str, Figure]
    taken: ListSource
    totals: UnitTotals
    settings: NBestSettings

    @property
    def name(self) -> str:
        """System and slice in one."""
        return self.system if self.part is None else f"{self.system} [{self.part}]"

    @cached_property
    def signature(self) -> str:
        """How the numbers were made: the signature of the ICE, which names the data."""
        return signature(self.totals.measures["ice"], self.n, digest_of(self.totals.totals))

    @cached_property
    def top(self) -> Evaluation:
        """The surest hypothesis of each utterance as an answer that may be withheld: curve, bands and all."""
        judged, how = self.taken.judged_tops(f"{self.name}, top hypothesis"), self.settings
        return evaluate(judged, level=how.level, replicates=how.replicates, seed=how.seed)[0]

    @cached_property
    def reliability(self) -> Reliability | None:
        """Mean confidence and share right of items, by bins of confidence; None where there is no item."""
        return None if self.taken.items is None else reliability(self.taken.items.sweep())

    def per_dialogue(self) -> pl.DataFrame:
        """Every measure on each dialogue alone (on each utterance, where there are no dialogues), null if undefined."""
        if not isinstance(self.taken, ExplodedLists):
            raise UsageError(
                "an engine counts dialogues in buckets, not one by one; read the lists with `engine` memory"
            )
        frame = self.taken.nbest.frame.with_columns(unit=self.taken.numbered)
        first = frame.group_by("unit").agg(pl.all().first(), pl.len().alias("utterances")).sort("unit")
        values = {key: self.totals.by_unit(key) for key in self.totals.measures}
        return first.drop("unit", "weight").with_columns(
            **{key: pl.Series(value).fill_nan(None) for key, value in values.items()}
        )

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as plain values."""
        figures = {key: figure.to_dict() for key, figure in self.figures.items() if key != "ice_floored_share"}
        figures["nce"]["population"] = "all hypothesised items"
        figures["nce_top"]["population"] = "items of the top hypothesis"
        share = self.figures["ice_floored_share"]
        return {
            "system": self.system,
            **({} if self.part is None else {"slice": self.part}),
            "n": self.n,
            "reference_items": self.reference_items,
            "measures": figures,
            "ice_floor": self.settings.least,
            "ice_floored_share": None if np.isnan(share.value) else share.value,
            "ice_parts": {key: None if np.isnan(one.value) else one.value for key, one in self.parts.items()},
            "intervals": {
                "ice_floored_share": share.to_dict(),
                **{f"ice_{key}": one.to_dict() for key, one in self.parts.items()},
            },
            "nce_clip": self.settings.least if self.settings.clip is None else self.settings.clip,
            "mass_given_out": self.given_out,
            "nothing_hypothesised": self.empty,
            "clustered_by_dialogue": self.totals.clustered,
            "signature": self.signature,
        }


class NBestEvaluations(Results[NBestEvaluation]):
    """The evaluations of one or more systems and slices, which show themselves together."""

    recalibrated: tuple[Recalibrated, ...] = ()
    """What recalibrating did to each system, where that was asked for."""
    scales: tuple[TunedScale, ...] = ()
    """The scales of log posteriors that were tuned."""
    rows: Callable[[], Iterator[dict[str, Any]]] | None = None
    """Makes the rows of the lists as they were evaluated, or recalibrated; None where nobody can ask for them."""
    _comparison: NBestComparison | None = None

    @property
    def comparison(self) -> NBestComparison:
        """The comparison of the systems, with the notes on how they were made; it must have been asked for."""
        if self._comparison is None:
            raise UsageError("there is no comparison here; evaluate with compare=True")
        return replace(self._comparison, notes=self.notes, warnings=self.warnings)

    @property
    def compared(self) -> bool:
        """Whether there is a comparison."""
        return self._comparison is not None

    def frame(self) -> pl.DataFrame:
        """Every measure of every system as a table, one row each."""
        rows = [
            {"system": one.system, "slice": one.part, "n": one.n, "measure": key, **_numbers_in(figure)}
            for one in self
            for key, figure in (*one.figures.items(), *((f"ice_{key}", part) for key, part in one.parts.items()))
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """All that `demur nbest --json` prints; a single evaluation stands at the top, and a comparison for all."""
        if self.compared:
            return self.comparison.to_dict()
        documents = [one.to_dict() for one in self]
        changes = [one.to_dict() for one in self.recalibrated]
        return {
            **(documents[0] if len(documents) == 1 else {"systems": documents}),
            **({"recalibrated": changes} if changes else {}),
            **({"acoustic_scales": [one.to_dict() for one in self.scales]} if self.scales else {}),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def evaluate_nbest(
    nbest: NBest, *, by: str | None = None, settings: NBestSettings | None = None, step: Step = silent, **options: Any
) -> NBestEvaluations:
    """Evaluate the lists of every system, and with `by` of every slice as well; options are those of `NBestSettings`.

    >>> from demur.nbest_lists.table import nbest as table
    >>> rows = [{"id": k, "reference": ["a"], "hypotheses": [{"items": ["a"], "confidence": 0.5}]} for k in range(3)]
    >>> round(evaluate_nbest(table(rows))[0].figures["ice"].value, 4)
    0.6931
    """
    how = NBestSettings(**options) if settings is None else settings
    check_level(how.level)
    parts = list(_parts(nbest, by))
    evaluations = []
    for done, (system, part, lists) in enumerate(parts):
        step(f"evaluating {system}", done, len(parts))
        evaluations.append(evaluate_lists(system, part, ExplodedLists.of(lists), how))
    return NBestEvaluations(evaluations).with_notes((how.note,))


def nbest_values(nbest: NBest, settings: NBestSettings | None = None) -> dict[str, float]:
    """Every measure's value on the lists of one system, without intervals."""
    how = settings or NBestSettings()
    taken = ExplodedLists.of(nbest)
    values = _row_values(taken.rows.acts, how.of_acts())
    items, parts = taken.rows.items, {f"ice_{key}": measure for key, measure in how.parts().items()}
    by_row: dict[str, TermMeasure] = {**how.of_items(), "item_ece": ECE()}
    if taken.items is None:
        values |= dict.fromkeys((*by_row, *parts), float("nan"))
    else:
        by_confidence = {key: by_row.pop(key) for key in ("nce", "item_ece")}  # confidences tie, so these are fewer
        sweep = taken.items.sweep()
        values |= _row_values(items, by_row)
        values |= {key: float(measure.finish(cell_totals(measure, sweep))) for key, measure in by_confidence.items()}
        values |= {key: float(measure.finish(sweep)) for key, measure in parts.items()}
    values["roc_auc"] = float(AUROC().finish(taken.tops.sweep()))
    return values


def _row_values(rows: pl.DataFrame, measures: Mapping[str, TermMeasure]) -> dict[str, float]:
    """Values of measures; those of one kind, such as precision and recall, are read from the same sums."""
    frame, sums = nw.from_native(rows), {}
    for measure in measures.values():
        if type(measure) not in sums:
            sums[type(measure)] = measure.reduce(frame)
    return {key: float(measure.finish(sums[type(measure)])) for key, measure in measures.items()}


def _parts(nbest: NBest, by: str | None) -> Iterator[tuple[str, str | None, NBest]]:
    for system in nbest.systems:
        lists = nbest.of(system)
        yield system, None, lists
        if by is None:
            continue
        if by not in lists.frame.columns:
            raise DataError(f'there is no column "{by}" to slice by', fix="read the table with keep=(column,)")
        values = lists.frame[by].alias("value").fill_null(NONE)
        if values.n_unique() > MOST_SLICES:
            raise DataError(
                f'"{by}" has {values.n_unique():,} values, too many to slice by (at most {MOST_SLICES})',
                fix="slice by a column that groups the utterances, such as a condition",
            )
        for value in sorted(values.unique()):
            yield system, f"{by}={value}", lists.taken((values == value).to_numpy())


def evaluate_lists(system: str, part: str | None, taken: ListSource, how: NBestSettings) -> NBestEvaluation:
    """Evaluate the lists of one system or slice."""
    totals = taken.totals(how.of_acts(), how.of_items())
    replicates = totals.draw(replicates=how.replicates, seed=how.seed)
    figures = {key: _total_figure(totals, replicates, key, how.level) for key in totals.measures}
    figures["item_ece"], parts = _item_figures(taken, totals.units, how)
    figures["roc_auc"] = figure_of(AUROC(), Sample(taken.tops, how.replicates, how.seed), how.level)
    meant = float(totals.of("ice", totals.totals)[1])
    return NBestEvaluation(
        system=system,
        part=part,
        n=totals.n,
        reference_items=int(meant) if meant == int(meant) else meant,
        given_out=taken.given_out,
        empty=taken.empty,
        figures=figures,
        parts=parts,
        taken=taken,
        totals=totals,
        settings=how,
    )


def _total_figure(totals: UnitTotals, replicates: Array, key: str, level: float) -> Figure:
    measure, value = totals.measures[key], float(totals.values(key, totals.totals))
    return unit_figure(
        value,
        totals.values(key, replicates),
        totals.units,
        level=level,
        scale=scale_of(measure),
        independent=totals.independent,
        why=lambda: measure.why_undefined(totals.of(key, totals.totals)),
    )


def _item_figures(taken: ListSource, units: int, how: NBestSettings) -> tuple[Figure, dict[str, Figure]]:
    """The calibration error of items and the parts of the ICE, from the sweep of items."""
    if taken.items is None:
        undefined = Figure(float("nan"), why=NO_ITEM)
        return undefined, dict.fromkeys(how.parts(), undefined)
    items = Sample(taken.items, how.replicates, how.seed)
    parts = {}
    for key, one in how.parts().items():
        value, why = float(one.finish(items.sweep)), partial(one.why_undefined, items.sweep)
        parts[key] = unit_figure(value, one.finish(items.drawn), units, level=how.level, scale="plain", why=why)
    return figure_of(ECE(), items, how.level), parts


def scale_of(measure: Measure) -> Scale:
    """The scale on which a measure's replicates are about normal."""
    if measure.interval == "share":
        return "logit"
    return "plain" if isinstance(measure, NCE) else "log"


def _numbers_in(one: Figure | Difference) -> dict[str, float | None]:
    document = one.to_dict()
    return {key: document[key] for key in ("value", "low", "high", "p", "p_adjusted") if key in document}


ITEMS = pl.List(pl.String)


def act_turns(nbest: NBest) -> pl.DataFrame:
    """A row per utterance: what was meant, its list, and its own share of the error counts and of the ICE.

    `ice` is what its items cost, `ser` the errors of the surest hypothesis, `wser` those expected under confidences,
    `oracle` those of the best hypothesis, `meant` the items meant. Sums of these over utterances, divided by that of
    `meant`, are the measures (where all utterances weigh the same). `right` says whether the surest is what was meant,
    and `sure` how sure it is; null where the list is empty.

    >>> from demur.nbest_lists.table import nbest
    >>> hypotheses = [{"items": ["b"], "confidence": 0.5}, {"items": ["a"], "confidence": 0.5}]
    >>> row, = act_turns(nbest([{"reference": ["a"], "hypotheses": hypotheses}])).to_dicts()
    >>> row["reference"], row["acts"], row["ser"], row["wser"], row["oracle"], round(row["ice"], 4), row["right"]
    (['a'], [['b'], ['a']], 1.0, 0.5, 0.0, 1.3863, False)
    """
    how = NBestSettings()
    rows, of_acts = explode(nbest), how.of_acts()
    counted = {key: of_acts[key] for key in ("ser", "wser", "oracle")}
    sums = ExplodedLists(nbest, rows, None).totals(counted, {"ice": how.of_items()["ice"]})
    weight = nbest.frame["weight"].replace(0.0, 1.0).to_numpy()[:, None]
    share = {key: sums.table[:, sums.columns[key]] / weight for key in sums.measures}
    first = rows.acts.filter("top")
    return nbest.frame.select(
        "id",
        "system",
        "dialogue",
        pl.exclude("id", "system", "dialogue", "weight"),
        pl.Series("reference", _items(nbest.sets, nbest.reference), dtype=ITEMS),
        pl.Series("acts", _nested(_items(nbest.sets, nbest.act), nbest.start), dtype=pl.List(ITEMS)),
        pl.Series("confidence", _nested(nbest.confidence.tolist(), nbest.start), dtype=pl.List(pl.Float64)),
        *(pl.Series(key, values[:, 0] + 0.0) for key, values in share.items()),
        pl.Series("meant", share["ice"][:, 1]),
        first["right"],
        first.select(pl.when("answered").then("confidence").alias("sure")).to_series(),
    )


def _items(sets: ItemSets, codes: NDArray[np.int32]) -> list[tuple[str, ...]]:
    known = {code: sets.items_of(code) for code in np.unique(codes).tolist()}
    return [known[code] for code in codes.tolist()]


def _nested(values: list[Any], start: NDArray[np.int64]) -> list[list[Any]]:
    return [values[a:b] for a, b in pairwise(start.tolist())]


_UTTERANCES = Wording("utterance", "utterances")

NBestVerdict = Literal["a better", "b better", "no significant difference"]


@dataclass(frozen=True, eq=False, repr=False)
class NBestPair(Shown):
    """Two systems' lists against each other; differences are those of a less those of b."""

    a: str
    b: str
    paired: bool
    n: int
    differences: Mapping[str, Difference]
    better: Mapping[str, Literal["lower", "higher"]]
    level: float

    @property
    def verdict(self) -> NBestVerdict:
        """Which system has the lower ICE, where that is shown after correction for all pairs."""
        return self.side("ice")

    def side(self, key: str) -> NBestVerdict:
        """Which system a measure shows to be better."""
        one = self.differences[key]
        if not one.p_adjusted < 1 - self.level:
            return "no significant difference"
        return "a better" if (one.value < 0) == (self.better[key] == "lower") else "b better"

    def to_dict(self) -> dict[str, Any]:
        """The pair as plain values."""
        return {
            "a": self.a,
            "b": self.b,
            "paired": self.paired,
            "n": self.n,
            "verdict": self.verdict,
            "better": {"a better": "a", "b better": "b"}.get(self.verdict),
            "differences": {key: {**one.to_dict(), "better": self.side(key)} for key, one in self.differences.items()},
        }

    def frame(self) -> pl.DataFrame:
        """The differences as a table, a row per measure."""
        rows = [{"a": self.a, "b": self.b, "measure": key, **_numbers_in(one)} for key, one in self.differences.items()]
        return pl.DataFrame(rows, infer_schema_length=None)


@dataclass(frozen=True, eq=False, repr=False)
class NBestComparison(Shown):
    """The lists of two or more systems against each other."""

    evaluations: NBestEvaluations
    pairs: tuple[NBestPair, ...]
    note: str
    dropped: Mapping[str, int]
    level: float
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_evaluations(self) -> NBestEvaluations:
        """The evaluations of the systems, with this comparison and its notes."""
        evaluations = NBestEvaluations(self.evaluations).with_notes(self.notes, self.warnings)
        evaluations._comparison = self
        return evaluations

    def to_dict(self) -> dict[str, Any]:
        """All that `demur nbest --compare --json` prints."""
        return {
            "pairs": [pair.to_dict() for pair in self.pairs],
            "systems": [one.to_dict() for one in self.evaluations],
            "note": self.note,
            "dropped": dict(self.dropped),
            "level": self.level,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def frame(self) -> pl.DataFrame:
        """The differences of all pairs as a table."""
        return pl.concat([pair.frame() for pair in self.pairs])


def compare_lists(
    nbest: NBest,
    *,
    systems: tuple[str, ...] | None = None,
    matched: bool = False,
    unpaired: bool = False,
    settings: NBestSettings | None = None,
    step: Step = silent,
    **options: Any,
) -> NBestComparison:
    """Compare the lists of systems, paired by utterance where these have ids; options are those of `NBestSettings`.

    Every measure gets a difference with interval and p-value; both corrected over pairs by Sidak's method.
    """
    how = NBestSettings(**options) if settings is None else settings
    pairing = pair_nbest(nbest, systems=systems, matched=matched, unpaired=unpaired)
    evaluations = NBestEvaluations(
        one for lists in pairing.lists.values() for one in evaluate_nbest(lists, settings=how, step=step)
    )
    step("comparing", 0, 1)
    taken = [one.taken for one in evaluations if isinstance(one.taken, ExplodedLists)]
    unit = next((one.unit for one in taken if one.unit is not None), None)
    totals = None
    if pairing.paired and unit is not None:  # the same units in all systems: dialogues, where some system names them
        totals = [replace(one, unit=unit).totals(how.of_acts(), how.of_items()) for one in taken]
    return compared(evaluations, how, pairing.paired, pairing.note, dropped=pairing.dropped, totals=totals)


def compared(
    evaluations: NBestEvaluations,
    how: NBestSettings,
    paired: bool,
    note: str,
    *,
    dropped: Mapping[str, int],
    totals: Sequence[UnitTotals] | None = None,
) -> NBestComparison:
    """The comparison of systems that were evaluated; paired ones have the same units, in their own totals or these."""
    of_each = [one.totals for one in evaluations] if totals is None else totals
    by_name = {one.system: own for one, own in zip(evaluations, of_each, strict=True)}
    pairs = [_pair_of(one, two, by_name, paired, how) for one, two in combinations(by_name, 2)]
    return NBestComparison(evaluations, _corrected_pairs(pairs), note, dropped, how.level, (note, how.note))


def differences_of(
    first: UnitTotals, second: UnitTotals, how: NBestSettings, *, paired: bool = True
) -> dict[str, Difference]:
    """Every measure of one table less that of another, with intervals; when paired, from the same replicated units."""
    one, two = (
        side.draw(replicates=how.replicates, seed=how.seed + (0 if paired else place))
        for place, side in enumerate((first, second))
    )
    units = first.units if paired else min(first.units, second.units)
    differences = {}
    for key in first.measures:
        value = float(first.values(key, first.totals) - second.values(key, second.totals))
        differences[key] = difference(value, first.values(key, one) - second.values(key, two), units, level=how.level)
    return differences


def _pair_of(one: str, two: str, totals: Mapping[str, UnitTotals], paired: bool, how: NBestSettings) -> NBestPair:
    first, second = totals[one], totals[two]
    differences = differences_of(first, second, how, paired=paired)
    better = {key: measure.better for key, measure in first.measures.items()}
    return NBestPair(one, two, paired, min(first.n, second.n), differences, better, how.level)


def _corrected_pairs(pairs: list[NBestPair]) -> tuple[NBestPair, ...]:
    return tuple(
        replace(pair, differences={key: one.corrected(len(pairs), pair.level) for key, one in pair.differences.items()})
        for pair in pairs
    )


@dataclass(frozen=True, slots=True)
class NBestPairing:
    """The lists of each system: when paired, of the same utterances in the same order."""

    lists: Mapping[str, NBest]
    paired: bool
    note: str
    dropped: Mapping[str, int]


def pair_nbest(
    nbest: NBest, *, systems: tuple[str, ...] | None = None, matched: bool = False, unpaired: bool = False
) -> NBestPairing:
    """Brings the lists of two or more systems together by the ids of utterances, whatever their order.

    References must agree. `matched` keeps the utterances that all systems have, `unpaired` lets each stand on its own.
    """
    if matched and unpaired:
        raise UsageError("`matched` pairs utterances and `unpaired` does not: give one of them")
    names = tuple(dict.fromkeys(nbest.systems if systems is None else systems))
    if len(names) < 2:
        raise DataError("a comparison needs two systems or more", got=", ".join(names) or "none")
    lists = {name: nbest.of(name) for name in names}
    unnamed = [name for name, one in lists.items() if one.frame["id"].null_count()]
    for name in unnamed if not unpaired else ():
        missing, size = lists[name].frame["id"].null_count(), len(lists[name])
        if missing < size or matched:
            rule = f"{missing:,} of {size:,} utterances of {name} have no id, so they cannot be paired"
            raise DataError(rule, fix="give every utterance an id; `unpaired` compares without")
    if unpaired or unnamed:
        note = unpaired_note(unnamed, unpaired)
        return NBestPairing(lists, paired=False, note=note, dropped=dict.fromkeys(names, 0))
    alignment = align({name: one.frame["id"] for name, one in lists.items()}, matched=matched, what=_UTTERANCES)
    lists = {name: one.taken(alignment.places[name].astype(np.int64)) for name, one in lists.items()}
    for one, two in pairwise(lists):
        _refuse_disagreement(one, lists[one], two, lists[two])
    return NBestPairing(lists, paired=True, note=alignment.note, dropped=alignment.dropped)


def _refuse_disagreement(one: str, first: NBest, two: str, second: NBest) -> None:
    """Paired utterances must mean the same, be of the same dialogue, where both systems name it, and weigh the same."""
    apart = np.flatnonzero(first.reference != second.reference)  # sets of one table are numbered alike
    if apart.size:
        place = int(apart[0])
        meant = [" ".join(lists.sets.items_of(int(lists.reference[place]))) or "nothing" for lists in (first, second)]
        rule = f'utterance "{first.frame["id"][place]}" means {meant[0]} in {one} but {meant[1]} in {two}'
        more = f" ({apart.size:,} such utterances)" if apart.size > 1 else ""
        raise DataError(rule + more, fix="do the ids mean the same utterances? `unpaired` compares without pairing")
    table = first.frame.select("id", "dialogue", "weight").with_columns(
        other=second.frame["dialogue"], other_weight=second.frame["weight"]
    )
    for row in table.filter(pl.col("dialogue") != pl.col("other")).head(1).iter_rows(named=True):
        rule = f'utterance "{row["id"]}" is of dialogue "{row["dialogue"]}" in {one} but of "{row["other"]}" in {two}'
        raise DataError(rule, fix="name dialogues alike in all files, or `unpaired` compares without pairing")
    for row in table.filter(pl.col("weight") != pl.col("other_weight")).head(1).iter_rows(named=True):
        rule = f'utterance "{row["id"]}" weighs {row["weight"]:g} in {one} but {row["other_weight"]:g} in {two}'
        raise DataError(rule, fix="paired utterances weigh the same; `unpaired` compares without pairing")
