"""Which column of a table plays which part, and which columns and rows are wanted."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import polars as pl

from demur.core.io.tables import ROW, Cells, Request, as_text
from demur.core.show.numbers import first_names
from demur.errors import DataError

ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": (),
    "input": ("text", "utterance", "question"),
    "target": (
        "gold",
        "label",
        "intent",
        "expected",
        "expected_intent",
        "golden intent",
        "golden_intent",
        "gold_intent",
        "gold_label",
        "true_intent",
        "true_label",
        "correct_answer",
        "ground_truth",
        "y_true",
    ),
    "prediction": (
        "response",
        "predicted",
        "answer",
        "predicted_intent",
        "predicted intent",
        "predicted_label",
        "pred",
        "pred_intent",
        "pred_label",
        "detected_intent",
        "extracted_answer",
        "y_pred",
    ),
    "confidence": ("score", "probability", "confidence_score", "conf", "prob", "y_proba"),
    "correct": (),
    "abstained": (),
    "failed": (),
    "system": ("run", "model"),
    "dialogue": ("dialogue_id", "session", "conversation"),
    "trial": ("epoch", "repeat", "repetition", "seed"),
    "weight": (),
    "stratum": (),
    "deployed_threshold": (),
    "judgement": (),
    "nbest": (),
}
"""The canonical columns of a responses table, each with the other names it may go by."""

NBEST_ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": ("utterance_id",),
    "dialogue": ALIASES["dialogue"],
    "reference": ("ref", "target", "gold"),
    "hypotheses": ("hyps", "nbest"),
    "asr": ("asr_hyps",),
    "cnet": ("confusion_network",),
    "system": ALIASES["system"],
    "weight": (),
}
"""The canonical columns of a table of N-best lists, likewise."""

DIALOGUE_ALIASES: Mapping[str, tuple[str, ...]] = {
    "dialogue": ALIASES["dialogue"],
    "outcome": (),
    "pre": ("pretest", "pre_test"),
    "post": ("posttest", "post_test"),
    "group": ("user", "subject", "student"),
}
"""The canonical columns of a table of dialogues, likewise."""

TRIAL_ALIASES: Mapping[str, tuple[str, ...]] = {
    "performer": ("system", "model", "agent"),
    "role": (),
    "subject": ("wizard", "caller", "participant", "user"),
    "n": ("trials", "count"),
    "components": (),
    "study": ("domain", "task"),
    "order": ("date", "timestamp"),
}
"""The canonical columns of a table of trials, likewise; the two that are measured go by the names they are given."""

WEAK = {"target": ("label", "intent")}
"""Names that a part goes by only where no better one is there: a label or an intent may be what was predicted."""

_LIKE = 0.8
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Resolution:
    """The column that plays each canonical part, what was guessed to find it, and the parts it is not clear for."""

    columns: Mapping[str, str]
    notes: tuple[str, ...]
    faults: Mapping[str, DataError] = field(default_factory=dict)


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Gives a hint that names the candidates most like a name, or all of them when none is like it."""
    known = list(dict.fromkeys(candidates))
    folded = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(f'"{folded[match]}"' for match in close) + "?"
    return f"there are {first_names(known, 20)}" if known else ""


def mapping_of(part: str, column: str) -> str:
    """Says how a column is given a part, on the command line and in Python.

    >>> mapping_of("target", "gold")
    '--map target=gold, or columns={"target": "gold"}'
    """
    return f'--map {part}={column}, or columns={{"{part}": "{column}"}}'


def lookalike(part: str, names: Iterable[str]) -> str | None:
    """Gives the column that is most likely a misspelt or shortened name of a part, if any is.

    >>> lookalike("confidence", ["id", "confidense"]), lookalike("prediction", ["pred"]), lookalike("target", ["id"])
    ('confidense', 'pred', None)
    """
    folded = {name.casefold(): name for name in names}
    for known in spellings(part):
        for match in get_close_matches(known, folded, n=1, cutoff=_LIKE):
            return folded[match]
    for known in spellings(part):
        for name in folded:
            if len(name) >= _SHORTEST and known.startswith(name):
                return folded[name]
    return None


def named_confidence(names: Collection[str]) -> str | None:
    """Gives a column whose name says that it holds confidences, if any does; a score or a p may be of anything.

    >>> named_confidence(["id", "confidence_score"]), named_confidence(["intentProb"]), named_confidence(["bleu_score"])
    ('confidence_score', 'intentProb', None)
    """
    telling = _WORDS["confidence"] - {"score", "p"}
    return lookalike("confidence", names) or next((name for name in names if telling & _words_of(name)), None)


def likely_columns(names: Iterable[str], parts: Iterable[str]) -> dict[str, str]:
    """Gives the column that each part is likely called, by the words in names; parts without one are left out.

    >>> likely_columns(["gold_label", "modelAnswer", "how sure", "id"], ["target", "prediction", "confidence"])
    {'target': 'gold_label', 'prediction': 'modelAnswer', 'confidence': 'how sure'}
    >>> likely_columns(["Expected Intent", "Top Intent"], ["target", "prediction"])
    {'target': 'Expected Intent', 'prediction': 'Top Intent'}

    Paths go by their last telling step alone, as those of one object share the others:

    >>> likely_columns(["answer.p", "answer.label", "truth"], ["target", "prediction", "confidence"])
    {'target': 'truth', 'prediction': 'answer.label', 'confidence': 'answer.p'}
    """
    free = list(names)
    found: dict[str, str] = {}
    for part in sorted(parts, key=list(_WORDS).index):
        others = set().union(*(words for other, words in _WORDS.items() if other != part))
        like = lookalike(part, [name for name in free if "." not in name and others.isdisjoint(_words_of(name))])
        named = [name for name in free if not _WORDS[part].isdisjoint(_words_of(name))]
        if like is not None or named:
            found[part] = like if like is not None else min(named, key=lambda name: len(others & _words_of(name)))
            free.remove(found[part])
    return {part: found[part] for part in parts if part in found}


_WORDS = {
    "prediction": {
        "predicted",
        "prediction",
        "pred",
        "detected",
        "top",
        "answer",
        "response",
        "output",
        "guess",
        "hypothesis",
    },
    "confidence": {"confidence", "conf", "score", "probability", "prob", "proba", "p", "certainty", "sure", "sureness"},
    "target": {"target", "gold", "golden", "expected", "true", "truth", "reference", "label", "intent"},
}
"""Words in the name of a column that speak for a part; the part that most rarely shares them with others first."""


def _words_of(name: str) -> set[str]:
    """The words in a name, whether spaces, signs or capitals divide them; of a path those of the last telling step.

    >>> _words_of("intent_prediction.name") == {"intent", "prediction"}, _words_of("result.confidence")
    (True, {'confidence'})
    """
    *before, last = name.split(".")
    telling = before[-1] if before and last.casefold() in _NO_WORDS else last
    return {word.casefold() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", telling or name)}


_NO_WORDS = ("name", "value", "text", "label", "content")
"""Steps of a path that do not say what they are of."""


def spellings(part: str) -> tuple[str, ...]:
    """Gives every name a canonical column may go by, the canonical one first."""
    return (part, *ALIASES[part])


def candidates(names: Collection[str], part: str, explicit: Mapping[str, str]) -> tuple[str, ...]:
    """Gives the columns that may play a part: those there are, else those that may yet appear."""
    if part in explicit:
        return (explicit[part],)
    if part in names:
        return (part,)
    known = spellings(part)
    return tuple(name for name in names if name.casefold() in known) or known


def resolve(
    names: Collection[str],
    explicit: Mapping[str, str],
    *,
    parts: Collection[str] | None = None,
    where: str = "",
    aliases: Mapping[str, tuple[str, ...]] = ALIASES,
    keep_faults: bool = False,
) -> Resolution:
    """Finds the column of each canonical part: the one mapped, else its namesake, else the only alias.

    A part for which none or several may be meant is a fault; with `keep_faults` these are given and not raised.
    """
    check_mapping(explicit, aliases)
    columns: dict[str, str] = {}
    faults: dict[str, DataError] = {}
    for part in aliases if parts is None else parts:
        found = _columns_for(part, aliases[part], names, explicit)
        if part in explicit and not found:
            rule = f'there is no column "{explicit[part]}" to map {part} from'
            faults[part] = DataError(rule, where=where, fix=nearest(explicit[part], names))
        elif len(found) > 1 and part == "trial":
            continue  # it matters only where ids repeat, which is refused then
        elif len(found) > 1:
            rule = f"{part} may be any of the columns " + ", ".join(f'"{name}"' for name in found)
            fix = f"choose one, for example {mapping_of(part, found[0])}"
            faults[part] = DataError(rule, where=where, fix=fix)
        elif found:
            columns[part] = found[0]
    if faults and not keep_faults:
        raise DataError.joined(faults.values())
    guessed = {part: name for part, name in columns.items() if name != part and part not in (*explicit, "trial")}
    notes = [f"{part} <- {name}" for part, name in guessed.items()]
    return Resolution(columns, tuple(notes), faults)


def _columns_for(
    part: str, others: Collection[str], names: Collection[str], explicit: Mapping[str, str]
) -> Sequence[str]:
    """Gives the columns that may play a part: the one mapped, else its namesake, else those of its other names."""
    if part in explicit or part in names:
        column = explicit.get(part, part)
        return [column] if column in names else []
    free = [name for name in names if name not in explicit.values()]
    namesakes = [name for name in free if name.casefold() == part]
    found = [name for name in free if name.casefold() in others]
    return namesakes or [name for name in found if name.casefold() not in WEAK.get(part, ())] or found


def check_mapping(explicit: Mapping[str, str], aliases: Mapping[str, tuple[str, ...]] = ALIASES) -> None:
    """Refuses a mapping of a part that does not exist."""
    unknown = [
        DataError(f'no column is called "{part}" here', where="--map, or columns:", fix=nearest(part, aliases))
        for part in explicit
        if part not in aliases
    ]
    if unknown:
        raise DataError.joined(unknown)


STRATUM = "stratum"
"""The column that names the stratum a row was drawn from; `weight` beside it says how many inputs a row stands for."""

DEPLOYED = "deployed_threshold"
"""The column that has the threshold at which a system is in use; the same in all of its rows."""

JUDGED = (
    "id",
    "system",
    "dialogue",
    "target",
    "prediction",
    "answered",
    "right",
    "failed",
    "out_of_scope",
    "confidence",
    "weight",
)
"""The columns every table of judged responses begins with, in this order."""

EVERYTHING = "*"

MOST_SLICES = 200
"""Values of a column up to which it makes sense to slice by it."""

_ON_REQUEST = ("input", "nbest")
_OURS = ("answered", "right", "out_of_scope")

Where = Sequence[tuple[str, str]]


def parts_wanted(keep: Collection[str], where: Where) -> tuple[str, ...]:
    """Gives the canonical columns to look for: all but the bulky ones, and these when they are named."""
    named = {*keep, *(column for column, _ in where)}
    return tuple(part for part in ALIASES if part not in _ON_REQUEST or part in named or EVERYTHING in keep)


def request_for(explicit: dict[str, str], keep: Collection[str], where: Where, key: Sequence[str] = ()) -> Request:
    """Gives what must be read of a file so that its rows can be judged, filtered, sliced and paired by a key."""
    parts = parts_wanted(keep, where)
    named = [*(column for column, _ in where), *(column for column in keep if column != EVERYTHING), *key]

    def wanted(names: Collection[str]) -> Collection[str]:
        playing = [column for part in parts for column in candidates(names, part, explicit)]
        return [*playing, *named, *(names if EVERYTHING in keep else ())]

    numeric = {column for part in ("confidence", "weight") for column in (*spellings(part), explicit.get(part, part))}
    return Request(candidates=wanted, numeric=frozenset(numeric), every_name=EVERYTHING in keep)


def filtered(cells: Cells, where: Where) -> Cells:
    """Keeps the rows whose columns equal the values asked for."""
    frame = cells.table.frame
    for column, value in where:
        name = column_named(column, cells.table.columns, cells.columns, cells.table.name)
        frame = frame.filter(as_text(frame[name]) == value)
    return replace(cells, table=replace(cells.table, frame=frame))


def extras(cells: Cells, keep: Sequence[str]) -> list[pl.Series]:
    """Gives the further columns asked for: the slices as text, `input` as text, `nbest` as it was read."""
    table = cells.table
    for name in keep:
        if name in _OURS and name in table.columns:
            rule = f'"{name}" is what a judged row is called here, too'
            raise DataError(rule, where=f"{table.name}:", fix="rename the column to keep it or to slice by it")
    wanted = list(dict.fromkeys(name for name in keep if name != EVERYTHING or name in table.columns))
    if EVERYTHING in keep:
        others = (name for name in table.frame.columns if name not in {ROW, *cells.columns.values()})
        known = {*cells.columns, *table.columns}
        wanted += [name for name in (*_ON_REQUEST, *others) if name not in wanted and name in known]
    found = []
    for name in wanted:
        if name not in JUDGED:
            column = column_named(name, table.columns, cells.columns, table.name)
            column = cells.columns.get(name, column) if name in _ON_REQUEST else column
            series = table.frame[column].alias(name)
            found.append(series if name == "nbest" else as_text(series))
    return found


def column_named(name: str, names: Collection[str], columns: Mapping[str, str], where: str) -> str:
    """Gives the column that goes by a name, else the one that plays the part of that name; refuses one not there."""
    column = name if name in names else columns.get(name)
    if column is None:
        raise unknown_column(name, names, where)
    return column


def unknown_column(name: str, names: Collection[str], where: str) -> DataError:
    """Gives the fault of a column that was asked for and is not there."""
    return DataError(f'there is no column "{name}"; {nearest(name, names)}', where=f"{where}:")
