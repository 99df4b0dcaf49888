"""The table of trials: how well systems and a gold standard do as something makes it harder, study by study."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.io.columns import TRIAL_ALIASES, check_mapping, filtered, mapping_of, nearest, resolve
from demur.core.io.files import read_source, table_of
from demur.core.io.sources import Source, system_names
from demur.core.io.tables import FALSE, ROW, SOURCE, TRUE, Cells, Request, Table, first
from demur.core.show.numbers import ROWS, Wording, first_names, table_line
from demur.errors import DataError, UsageError, faults_of
from demur.importers.reading import opened, read_table

Role = Literal["gold", "system"]
Kind = Literal["trials", "rates", "scores"]
"""0 or 1 of each trial, the share of n trials that succeeded, or a score."""

ROLES: Mapping[str, Role] = {
    "gold": "gold",
    "wizard": "gold",
    "human": "gold",
    "reference": "gold",
    "system": "system",
    "machine": "system",
}
"""What a column role may say, in any letter case."""

NOTHING_ON = "[]"
"""How the column components says that nothing was switched on."""

_SEPARATORS = re.compile(r"[+,;]")

GOLD_STANDARD = "gold standard"
"""What several gold performers are called together."""

GOLD_NAMES = ("gold", "wizard", "wizards", "human", "humans")
"""Performers that are taken for the gold standard where nothing else is said, in any letter case."""

IS_GOLD = pl.col("role") == "gold"
_SYSTEM: Role = "system"

_WHOLE_ENOUGH = 0.05
"""How far a rate times its n may be from a whole number before a warning says so."""

_NAMING = '--gold NAME, or gold=("NAME",), names it, or a column role says gold or system'
_ALONE = Wording(
    "row names no subject and is taken for one of its own",
    "rows name no subject and are each taken for one of their own",
)
_LEFT_OUT = Wording("row has no {} and is left out", "rows have no {} and are left out")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReading:
    """How to read a table of trials.

    `x` and `y` are the columns that were measured: what makes it harder, and how well it went. `lower` and `upper`
    bound y; scores without `upper` have no bound. `gold` names the performers that are the gold standard, whatever a
    column role says. `columns` maps canonical columns to those of the file. `where` keeps the rows whose column has
    the value.
    """

    x: str
    y: str
    upper: float | None = None
    lower: float = 0.0
    gold: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    where: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuses bounds between which nothing lies, and columns that trials do not have."""
        if self.upper is not None and not (isfinite(self.lower) and isfinite(self.upper) and self.lower < self.upper):
            raise UsageError(f"{self.y} cannot lie between {self.lower:g} and {self.upper:g}; --upper exceeds --lower")
        check_mapping(self.columns, TRIAL_ALIASES)


@dataclass(frozen=True, slots=True)
class TrialRows:
    """Rows of one or more tables, and the tables they stand in.

    `frame` has study, performer, role (null where no column says it), x, y, n, subject, components (the JSON of the
    sorted names of what was on) and order. A number or a subject that is missing is null.
    """

    frame: pl.DataFrame
    tables: Sequence[Table]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def place(self, position: int) -> str:
        """Says where in its file a row stands."""
        table = self.tables[int(self.frame[SOURCE][position])]
        return table.place(int(self.frame[ROW][position]))

    def fault(self, position: int, column: str, rule: str, *, got: object, fix: str = "") -> DataError:
        """The fault of one cell."""
        return DataError(rule, where=f"{self.place(position)}: {column}", got=got, fix=fix)

    def only(self, rows: pl.Series | pl.Expr) -> TrialRows:
        """Only these rows."""
        return replace(self, frame=self.frame.filter(rows))

    def with_notes(self, frame: pl.DataFrame, *notes: str) -> TrialRows:
        """The rows with another frame, and notes on how it came about."""
        return replace(self, frame=frame, notes=(*self.notes, *notes))


def rows_of(tables: Sequence[Table], studies: Sequence[str], reading: TrialReading) -> TrialRows:
    """The rows of tables; a table without a column study is the study of the name given."""
    frames, warnings = [], []
    notes: list[str] = []
    where = " and ".join(f"{column} is {value}" for column, value in reading.where)
    for number, (table, study) in enumerate(zip(tables, studies, strict=True)):
        cells, guesses = _resolved(table, reading)
        notes += guesses
        if where:
            kept = f"{cells.table.frame.height:,} of {ROWS.with_count(table.frame.height)} kept where {where}"
            notes.append(f"{table.name}: {kept}")
        if cells.table.frame.is_empty():
            warnings.append(f"{table.name}: no row is left where {where}")
            continue
        columns, roles = _trial_columns(cells, reading, study)
        frames.append(pl.DataFrame(columns).with_columns(pl.lit(number).alias(SOURCE)))
        notes += roles
    if not frames:
        raise DataError(f"no row is left where {where}", where=f"{tables[0].name}:")
    return TrialRows(pl.concat(frames), tables, tuple(dict.fromkeys(notes)), tuple(warnings))


def _resolved(table: Table, reading: TrialReading) -> tuple[Cells, tuple[str, ...]]:
    """The rows of a table that count and the columns they have, with notes; text has no space around it."""
    if reading.x == reading.y:
        raise UsageError(f'x and y are both the column "{reading.x}"; performance is measured against something else')
    for part, column in reading.columns.items():
        if column in (reading.x, reading.y):
            option = "x" if column == reading.x else "y"
            raise UsageError(f'the column "{column}" is {option} and cannot be {part} as well')
    where = f"{table.name}:"
    faults = []
    for option, name in (("x", reading.x), ("y", reading.y)):
        if name not in table.columns:
            rule = f'there is no column "{name}"; {nearest(name, table.columns)}'
            faults.append(DataError(rule, where=where, fix=f"--{option} names the column"))
    others = [name for name in table.columns if name not in (reading.x, reading.y)]
    found = resolve(others, reading.columns, where=where, aliases=TRIAL_ALIASES, keep_faults=True)
    faults += found.faults.values()
    if "performer" not in {*found.columns, *found.faults}:
        rule = f"needs a column performer; there are {', '.join(table.columns[:12])}"
        faults.append(DataError(rule, where=table.name, fix=mapping_of("performer", "COLUMN")))
    if faults:
        raise DataError.joined(faults)
    bare = pl.col(pl.String).str.strip_chars()
    stripped = replace(table, frame=table.frame.with_columns(pl.when(bare != "").then(bare)))
    return filtered(Cells(stripped, found.columns), reading.where), tuple(found.notes)


def _trial_columns(cells: Cells, reading: TrialReading, study: str) -> tuple[list[pl.Series], list[str]]:
    """The columns of trials, each checked, with notes on roles; the faults of all columns are told together."""
    measured = replace(cells, columns={name: name for name in (reading.x, reading.y)})
    columns: list[Callable[[], pl.Series]] = [
        lambda: cells.table.frame[ROW],
        lambda: (
            _required_names(cells, "study")
            if "study" in cells
            else pl.repeat(study, cells.table.frame.height, eager=True).alias("study")
        ),
        lambda: _required_names(cells, "performer"),
        lambda: _roles(cells),
        lambda: _finite(measured, reading.x, measured.numbers(reading.x).alias("x")),
        lambda: _finite(measured, reading.y, _performance(measured, reading.y).alias("y")),
        lambda: _finite(cells, "n", cells.numbers("n")),
        lambda: cells.text("subject"),
        lambda: _components(cells),
        lambda: _order(cells),
    ]
    try:
        checked = [column() for column in columns]
    except DataError:
        raise DataError.joined(faults_of(columns)) from None
    words = sorted(set(cells.text("role").str.to_lowercase().drop_nulls()) - {"gold", "system"})
    return checked, [f'role "{word}" read as {ROLES[word]}' for word in words]


def _required_names(cells: Cells, part: str) -> pl.Series:
    names = cells.text(part)
    missing = first(names.is_null())
    if missing is not None:
        raise cells.fault(part, missing, f"must name the {part}", got="nothing")
    return names


def _roles(cells: Cells) -> pl.Series:
    given = cells.text("role").str.to_lowercase()
    roles = given.replace_strict(dict(ROLES), default=None, return_dtype=pl.String)
    bad = first(roles.is_null()) if "role" in cells else None
    if bad is not None:
        got = cells.text("role")[bad]
        raise cells.fault("role", bad, "must be gold or system", got="nothing" if got is None else got)
    return roles


def _performance(cells: Cells, name: str) -> pl.Series:
    """Numbers as they are, yes and no in their usual spellings as 1 and 0."""
    series = cells.table.frame[name].alias("y")
    words = set(series.str.to_lowercase().drop_nulls()) if series.dtype == pl.String else {""}
    if series.dtype == pl.Boolean or words <= {*TRUE, *FALSE}:
        return cells.flags(name).cast(pl.Float64)
    return cells.numbers(name)


def _finite(cells: Cells, part: str, values: pl.Series) -> pl.Series:
    """Refuses what is infinite. NaN is a missing value, as frames that know no null have it; -0 is 0."""
    known = values.fill_nan(None)
    bad = first(known.is_infinite())
    if bad is not None:
        raise cells.fault(part, bad, "must be a finite number", got=str(known[bad]))
    return pl.select(pl.when(known == 0).then(0.0).otherwise(known).alias(known.name)).to_series()


def _components(cells: Cells) -> pl.Series:
    text = cells.text("components")
    known = {cell: component_names(cell) for cell in text.drop_nulls().unique()}
    coded = {cell: msgspec.json.encode(names).decode() for cell, names in known.items() if names is not None}
    read = text.replace_strict(coded, default=None, return_dtype=pl.String)
    bad = first(text.is_not_null() & read.is_null())
    if bad is not None:
        fix = "write asr+nlu, a list of names, or none"
        raise cells.fault("components", bad, "must list the names of what was on", got=text[bad], fix=fix)
    return read.fill_null(NOTHING_ON)


def _order(cells: Cells) -> pl.Series:
    """When each trial took place, as numbers that rise: a number, or the rank of a date; null where nothing says it."""
    texts = cells.text("order")
    numbers = texts.cast(pl.Float64, strict=False)
    dated = numbers.null_count() > texts.null_count()
    return (texts.rank("dense").cast(pl.Float64) if dated else numbers).alias("order")


def component_names(text: str) -> list[str] | None:
    """The names a cell lists, each once and sorted; None where it cannot be read as a list of names.

    >>> component_names("repair + asr"), component_names('["asr", "repair"]'), component_names("none")
    (['asr', 'repair'], ['asr', 'repair'], [])
    """
    if text.startswith(("[", "{")):
        try:
            names = [name for name in msgspec.json.decode(text, type=list[str | None]) if name is not None]
        except (msgspec.MsgspecError, RecursionError):
            return None
    else:
        names = [] if text.casefold() == "none" else _SEPARATORS.split(text)
    return sorted({stripped for name in names if (stripped := name.strip())})


_NAMED_COLUMNS = {name for part, others in TRIAL_ALIASES.items() for name in (part, *others)}


def measured_columns(tables: Sequence[Any], x: str | None, y: str | None) -> tuple[str, str, list[str]]:
    """What makes it harder and how well it went, with a note of what was guessed.

    The performance is the only column of 0 and 1 (or, beside a column n, of shares), what makes it harder the only
    other column of numbers. Where there are several of either, nothing is guessed.

    >>> rows = {"performer": ["wizard", "A"], "wer": [0.1, 0.35], "completed": [1, 0]}
    >>> measured_columns([rows], None, None)
    ('wer', 'completed', ['x <- wer, y <- completed: the only columns they could be'])
    """
    if x is not None and y is not None:
        return x, y, []
    frame = pl.concat([_frame(table) for table in tables], how="diagonal_relaxed")
    numbers = {
        name: _as_numbers(frame[name].alias("cell")) for name in frame.columns if name.casefold() not in _NAMED_COLUMNS
    }
    known = {name: column for name, column in numbers.items() if column is not None and name not in (x, y)}
    shares = "n" in frame.columns
    ends = [name for name, column in known.items() if _is_success(column, shares=shares)]
    others = [name for name in known if name not in ends]
    found_y = [y] if y is not None else ends if x is None or len(ends) == 1 else list(known)
    found_x = [x] if x is not None else others if y is None or len(others) == 1 else list(known)
    if len(found_x) != 1 or len(found_y) != 1:
        raise UsageError(
            "trials need --x, what makes it harder, and --y, how well it went; columns of numbers here: "
            f"{', '.join(known) or 'none'}"
        )
    return found_x[0], found_y[0], [f"x <- {found_x[0]}, y <- {found_y[0]}: the only columns they could be"]


def _frame(table: Any) -> pl.DataFrame:
    return read_table(table) if isinstance(table, str | Path | Source) else table_of(table, Request()).frame.drop(ROW)


def _as_numbers(column: pl.Series) -> pl.Series | None:
    """A column as numbers, or nothing where some cell is none."""
    if column.dtype == pl.Boolean or column.dtype.is_numeric():
        return column.cast(pl.Float64).drop_nulls()
    if column.dtype != pl.String:
        return None
    words = column.str.to_lowercase().replace({"true": "1", "yes": "1", "false": "0", "no": "0"})
    found = words.str.strip_chars().cast(pl.Float64, strict=False)
    return None if (found.is_null() & column.is_not_null()).any() else found.drop_nulls()


def _is_success(column: pl.Series, *, shares: bool) -> bool:
    return not column.is_empty() and bool(column.is_between(0, 1).all() if shares else column.is_in([0.0, 1.0]).all())


def kind_of(rows: TrialRows, reading: TrialReading) -> tuple[Kind, list[str]]:
    """What the performance is, and what a reader should know of it; refuses what cannot be."""
    y, n, name = rows.frame["y"], rows.frame["n"], reading.y
    may_be_share = reading.lower == 0 and reading.upper in (None, 1)
    if n.is_not_null().any():
        bad = first(n.is_null() | (n <= 0) | (n != n.round()))
        if bad is not None:
            rule = f"must be a whole number of at least 1: the trials that {name} is of"
            raise rows.fault(bad, "n", rule, got="nothing" if n[bad] is None else n[bad])
        if may_be_share:
            fix = "with a column n it is a rate; --upper U, or upper=U, for mean scores of n trials"
            _refuse_outside(rows, name, 0.0, 1.0, fix)
            return "rates", _round(rows, name)
        _refuse_outside(rows, name, reading.lower, reading.upper)
        return "scores", [f"{name} is the mean of n trials in each row"]
    if may_be_share:
        broken = first(~y.is_in([0.0, 1.0]))
        if broken is None:
            return "trials", []
        if reading.upper is None and y.is_between(0, 1).all():
            raise rows.fault(
                broken,
                name,
                "must be 0 or 1 where no column n says how many trials a rate is of: rates without n",
                got=float(y[broken]),
                fix=f"give a column n; or --upper 1, or upper=1, if {name} is a score between 0 and 1",
            )
    _refuse_outside(rows, name, reading.lower, reading.upper)
    unbounded = f"{name} has no upper bound; intellectual complexity needs one: --upper U, or upper=U"
    return "scores", [unbounded] if reading.upper is None else []


def _refuse_outside(rows: TrialRows, name: str, lower: float, upper: float | None, fix: str = "") -> None:
    y = rows.frame["y"]
    bad = first((y < lower) | (y > upper) if upper is not None else y < lower)
    if bad is None:
        return
    if upper is None:
        rule = f"must be at least {lower:g}"
        way_out = "--lower L, or lower=L, gives the lower bound, -inf where there is none"
    else:
        rule = f"must lie between {lower:g} and {upper:g}"
        way_out = "--lower and --upper give the bounds of the metric"
    raise rows.fault(bad, name, rule, got=float(y[bad]), fix=fix or way_out)


def _round(rows: TrialRows, name: str) -> list[str]:
    successes = rows.frame["y"] * rows.frame["n"]
    odd = (successes - successes.round()).abs() > _WHOLE_ENOUGH
    place = first(odd)
    if place is None:
        return []
    many = ROWS.with_count(int(odd.sum()))
    return [f"{name} times n is no whole number in {many}, first at {rows.place(place)}: was it rounded?"]


def with_roles(rows: TrialRows, gold: Sequence[str]) -> TrialRows:
    """Fills in the roles: as `gold` says, otherwise as the column role says, otherwise by the names of performers."""
    frame, performers = rows.frame, _performers(rows.frame)
    for name in gold:
        if name not in performers:
            rule = f'there is no performer "{name}" to be the gold standard'
            raise DataError(rule, where=f"{rows.tables[0].name}:", fix=nearest(name, performers))
    lower = pl.col("performer").str.to_lowercase()
    is_gold = pl.col("performer").is_in(list(gold)) if gold else lower.is_in(GOLD_NAMES)
    role = pl.when(is_gold).then(pl.lit("gold")).otherwise(pl.lit("system"))
    if gold:
        stated = frame["role"].null_count() < frame.height
        notes = ["the column role is not looked at, as the gold standard was named"] if stated else []
        return rows.with_notes(frame.with_columns(role=role), *notes)
    guessed = _performers(frame.filter(pl.col("role").is_null() & is_gold))
    notes = [f'performer "{name}" read as the gold standard' for name in guessed]
    return rows.with_notes(frame.with_columns(role=pl.coalesce("role", role)), *notes)


def _performers(frame: pl.DataFrame) -> tuple[str, ...]:
    return tuple(frame["performer"].unique().sort())


def performer_roles(rows: TrialRows, where: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What the gold standard of a study is called, who it is made of, and the systems.

    Refuses a study without a gold standard, without a system, or with someone who is both.
    """
    gold, systems = _performers(rows.frame.filter(IS_GOLD)), _performers(rows.frame.filter(~IS_GOLD))
    guessed = [note for note in rows.notes if note.startswith("study <- ")]
    divided = "; each file is a study of its own unless a column study says otherwise" if len(rows.tables) > 1 else ""
    if guessed:
        divided = f"; each {guessed[0].removeprefix('study <- ')} is read as a study of its own"
    if not gold:
        rule = f"there is no gold performer among {first_names(systems)}"
        raise DataError(rule, where=where, fix=f"{_NAMING}{divided}")
    if not systems:
        fix = f"what is compared with the gold standard has the role system{divided}"
        raise DataError(f"there is no system beside the gold standard, {first_names(gold)}", where=where, fix=fix)
    for name in gold:
        if name in systems:
            mine = rows.only(pl.col("performer") == name)
            roles = mine.frame["role"]
            later = first(roles != roles[0]) or 0
            rule = f'performer "{name}" is {roles[later]} here and {roles[0]} at {mine.place(0)}'
            raise DataError(rule, where=f"{mine.place(later)}:", fix="a performer has one role in a study")
    called = gold[0] if len(gold) == 1 else GOLD_STANDARD
    if called in systems:
        raise DataError(f'a system is called "{called}", as is the gold standard of several performers', where=where)
    return called, gold, systems


def with_subjects(rows: TrialRows, gold: Sequence[str]) -> TrialRows:
    """Names subjects after the gold performers where several are taken together, and tells who has no subject."""
    named = rows
    if len(gold) > 1:
        unnamed = IS_GOLD & pl.col("subject").is_null()
        notes = [f"{GOLD_STANDARD}: {first_names(gold)} taken together"]
        if rows.frame.filter(unnamed).height:
            notes.append("gold performers are the subjects of their trials where no other is named")
        subject = pl.when(unnamed).then("performer").otherwise("subject")
        named = rows.with_notes(rows.frame.with_columns(subject=subject), *notes)
    alone = named.frame["subject"].is_null()
    if rows.frame["subject"].is_null().all():
        of = "" if alone.all() else " of a system"
        note = f"no column names subjects: each trial{of} is taken for a subject of its own"
        return named.with_notes(named.frame, note)
    if not alone.any():
        return named
    warning = f"{_ALONE.with_count(int(alone.sum()))}, first {named.place(first(alone) or 0)}"
    return replace(named, warnings=(*named.warnings, warning))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trials:
    """The trials of one study, sorted, so that it does not matter in which order they were written down.

    `performers` begins with the gold standard; `performer`, `subject` and `combination` say for each trial where in
    `performers`, `subjects` and `combinations` its own stand. `y` is as it was given, `n` how many trials it sums
    up. A combination is what was switched on; those of the gold standard are not looked at, and its trials say 0.
    """

    study: str
    x_name: str
    y_name: str
    kind: Kind
    lower: float
    upper: float | None
    performers: tuple[str, ...]
    roles: tuple[Role, ...]
    performer: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    n: NDArray[np.float64]
    subject: NDArray[np.int64]
    subjects: tuple[str, ...]
    combination: NDArray[np.int64]
    combinations: tuple[frozenset[str], ...]
    independent: bool
    """Whether nobody is named, so that each trial is taken for a subject of its own."""
    collected: NDArray[np.float64] | None = None
    """When each of the subjects came first; None where no column `order` says it of all."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return table_line("Trials", len(self), "trials", self.performers)

    @property
    def shares_subjects(self) -> bool:
        """Whether subjects of the gold standard are those of systems too: then they are participants, not wizards."""
        is_gold = self.performer == 0
        return bool(np.isin(self.subject[is_gold], self.subject[~is_gold]).any())

    @property
    def digest(self) -> str:
        """Digest of the data: of all that is analysed, whatever the file and its columns are called."""
        combinations = [sorted(names) for names in self.combinations]
        named = (self.kind, self.lower, self.upper, self.performers, self.roles, self.subjects, combinations)
        digest = hashlib.blake2b(repr(named).encode(), digest_size=8)
        for places in (self.performer, self.subject, self.combination):
            digest.update(places.astype("<i8").tobytes())
        for numbers in (self.x, self.y, self.n):
            digest.update(numbers.astype("<f8").tobytes())
        return digest.hexdigest()


def read_trials(*sources: str | Path | Source, reading: TrialReading) -> tuple[Trials, ...]:
    """Reads the trials in files: paths, globs, or `-` for standard input; one for each study, in order of name.

    A table without a column `study` stands for one study, named after its file.
    """
    with opened(*sources) as files:
        tables = [read_source(file, Request()) for file in files]
        return _studies(rows_of(tables, _study_names(files), reading), reading)


def trials(data: object, *, reading: TrialReading) -> tuple[Trials, ...]:
    """The trials in a frame, in columns, or in rows.

    >>> rows = [{"performer": who, "wer": 0.1, "done": 1} for who in ("wizard", "A", "B")]
    >>> found, = trials(rows, reading=TrialReading(x="wer", y="done"))
    >>> found.performers, found.roles, found.kind
    (('wizard', 'A', 'B'), ('gold', 'system', 'system'), 'trials')
    """
    return _studies(rows_of([table_of(data, Request())], ["study"], reading), reading)


def _study_names(files: Sequence[Source]) -> list[str]:
    """The stem of each file, with its folder where two share one, and the whole path where they share that too."""
    names, _ = system_names(files)
    shared = Counter(names)
    return [file.name if shared[name] > 1 else name for file, name in zip(files, names, strict=True)]


def _studies(rows: TrialRows, reading: TrialReading) -> tuple[Trials, ...]:
    assigned = with_roles(rows, reading.gold)
    names = sorted(assigned.frame["study"].unique())
    where = {name: f'study "{name}":' if len(names) > 1 else f"{rows.tables[0].name}:" for name in names}
    return tuple(_study(name, assigned.only(pl.col("study") == name), reading, where[name]) for name in names)


def _study(name: str, rows: TrialRows, reading: TrialReading, where: str) -> Trials:
    measured = _measured(rows, reading, where)
    called, gold, systems = performer_roles(measured, where)
    kind, about = kind_of(measured, reading)
    ready = with_subjects(measured, gold)
    coded = ready.frame.filter(~IS_GOLD)["components"].unique()
    components = {code: msgspec.json.decode(code, type=list[str]) for code in coded}
    combinations = sorted(coded, key=lambda code: (len(components[code]), components[code]))
    ordered = _in_order(ready.frame, systems, combinations)
    subject, subjects = _subjects(ordered["subject"])
    columns: dict[str, Any] = {part: ordered[part].to_numpy() for part in ("performer", "x", "y", "n", "combination")}
    columns["subject"] = subject
    came = pl.DataFrame({"subject": subject, "order": ordered["order"]}).group_by("subject").agg(pl.col("order").min())
    columns["collected"] = None if came["order"].null_count() else came.sort("subject")["order"].to_numpy().copy()
    for array in columns.values():
        if array is not None:
            array.setflags(write=False)
    return Trials(
        study=name,
        x_name=reading.x,
        y_name=reading.y,
        kind=kind,
        lower=reading.lower,
        upper=reading.upper if kind == "scores" else 1.0,
        performers=(called, *systems),
        roles=("gold", *[_SYSTEM] * len(systems)),
        subjects=subjects,
        combinations=tuple(frozenset(components[code]) for code in combinations),
        independent=ready.frame["subject"].is_null().all(),
        notes=(*ready.notes, *about),
        warnings=ready.warnings,
        **columns,
    )


def _measured(rows: TrialRows, reading: TrialReading, where: str) -> TrialRows:
    """Leaves out the rows without x or y, and tells how many, where the first stands, and who is gone with them."""
    missing = rows.frame["x"].is_null() | rows.frame["y"].is_null()
    either = f"{reading.x} or no {reading.y}"
    place = first(missing)
    if place is None:
        return rows
    if missing.all():
        raise DataError(f"every row has no {either}", where=where, fix="nothing is left to analyse")
    kept = rows.only(~missing)
    gone = sorted({*rows.frame["performer"]} - {*kept.frame["performer"]})
    all_of = f"; nothing is left of {first_names(gone)}" if gone else ""
    warning = f"{_LEFT_OUT.about(either).with_count(int(missing.sum()))}, first {rows.place(place)}{all_of}"
    return replace(kept, warnings=(*kept.warnings, warning))


def _in_order(frame: pl.DataFrame, systems: Sequence[str], combinations: Sequence[str]) -> pl.DataFrame:
    """The rows in the one order that they have whatever the order they came in."""
    performer = pl.col("performer").replace_strict(_positions(systems), default=-1, return_dtype=pl.Int64) + 1
    combination = pl.col("components").replace_strict(_positions(combinations), default=0, return_dtype=pl.Int64)
    return frame.select(
        "subject",
        "x",
        "y",
        "order",
        pl.col("n").fill_null(1.0),
        performer=performer,
        combination=pl.when(IS_GOLD).then(pl.lit(0, pl.Int64)).otherwise(combination),
    ).sort("performer", "subject", "x", "y", "n", "combination", nulls_last=True)


def _positions(names: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _subjects(named: pl.Series) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Each trial's place among the subjects: those named in order of name, then one for each trial without."""
    names = named.drop_nulls().unique().sort().to_list()
    subject = named.replace_strict(_positions(names), default=-1, return_dtype=pl.Int64).to_numpy().copy()
    alone = subject < 0
    subject[alone] = len(names) + np.arange(alone.sum())
    return subject, (*names, *(f"trial {number + 1}" for number in range(alone.sum())))
