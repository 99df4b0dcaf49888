"""Which column of a table plays which part."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from demur.errors import DataError

ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": (),
    "input": ("text", "utterance", "question"),
    "target": ("gold", "label", "intent", "expected"),
    "prediction": ("response", "predicted", "answer"),
    "confidence": ("score", "probability"),
    "correct": (),
    "abstained": (),
    "failed": (),
    "system": ("run", "model"),
    "dialogue": ("dialogue_id", "session", "conversation"),
    "weight": (),
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
}
"""The canonical columns of a table of trials, likewise; the two that are measured go by the names they are given."""

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
    return "there are " + ", ".join(f'"{name}"' for name in known[:20]) if known else ""


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
) -> Resolution:
    """Finds the column of each canonical part: the one mapped, else its namesake, else the only alias."""
    found = resolve_clear(names, explicit, parts=parts, where=where, aliases=aliases)
    if found.faults:
        raise DataError.joined(found.faults.values())
    return found


def resolve_clear(
    names: Collection[str],
    explicit: Mapping[str, str],
    *,
    parts: Collection[str] | None = None,
    where: str = "",
    aliases: Mapping[str, tuple[str, ...]] = ALIASES,
) -> Resolution:
    """Finds columns as `resolve` does, and gives the faults of the parts for which none or several may be meant."""
    check_mapping(explicit, aliases)
    columns: dict[str, str] = {}
    faults: dict[str, DataError] = {}
    for part in aliases if parts is None else parts:
        try:
            column = _explicit(part, names, explicit, where)
            if column is None:
                column = _guess(part, aliases[part], names, explicit, where)
        except DataError as fault:
            faults[part] = fault
            continue
        if column is not None:
            columns[part] = column
    notes = [f"{part} <- {name}" for part, name in columns.items() if name != part and part not in explicit]
    return Resolution(columns, tuple(notes), faults)


def check_mapping(explicit: Mapping[str, str], aliases: Mapping[str, tuple[str, ...]] = ALIASES) -> None:
    """Refuses a mapping of a part that does not exist."""
    unknown = [
        DataError(f'no column is called "{part}" here', where="--map, or columns:", fix=nearest(part, aliases))
        for part in explicit
        if part not in aliases
    ]
    if unknown:
        raise DataError.joined(unknown)


def _explicit(part: str, names: Collection[str], explicit: Mapping[str, str], where: str) -> str | None:
    column = explicit.get(part)
    if column is not None and column not in names:
        rule = f'there is no column "{column}" to map {part} from'
        raise DataError(rule, where=where, fix=nearest(column, names))
    return column


def _guess(
    part: str, others: tuple[str, ...], names: Collection[str], explicit: Mapping[str, str], where: str
) -> str | None:
    if part in names:
        return part
    free = [name for name in names if name not in explicit.values()]
    for known in ((part,), others):
        found = [name for name in free if name.casefold() in known]
        if len(found) > 1:
            listed = ", ".join(f'"{name}"' for name in found)
            rule = f"{part} may be any of the columns {listed}"
            raise DataError(rule, where=where, fix=f"choose one, for example {mapping_of(part, found[0])}")
        if found:
            return found[0]
    return None
