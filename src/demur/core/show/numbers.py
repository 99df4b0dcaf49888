"""Numbers in words: percent, counts, intervals, p-values, thresholds and lists."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from demur.core.show.results import threshold_text
from demur.core.stats.intervals import Figure


class Wording(NamedTuple):
    """What is said of one thing and of several."""

    one: str
    many: str

    def about(self, label: str) -> Wording:
        """The wording with a label put in.

        >>> Wording('target "{}" is odd', 'targets "{}" are odd').about("x").one
        'target "x" is odd'
        """
        return Wording(self.one.format(label), self.many.format(label))

    def with_count(self, count: int) -> str:
        """The count with the words that go with it.

        >>> Wording("row failed", "rows failed").with_count(1200)
        '1,200 rows failed'
        """
        return f"{count:,} {self.one if count == 1 else self.many}"


INPUTS = Wording("input", "inputs")
ROWS = Wording("row", "rows")
SUCH_IDS = Wording("such id", "such ids")
SUCH_ROWS = Wording("such row", "such rows")


def sentences_of_counts(counts: Iterable[Counter[Wording]]) -> list[str]:
    """What was counted, summed over all counters, one sentence for each thing that happened."""
    total = sum(counts, start=Counter())
    return [wording.with_count(count) for wording, count in total.items() if count]


MOST_CHARACTERS = 36
"""Characters of a name in a legend."""


def shorten(names: Sequence[str], most: int = MOST_CHARACTERS) -> dict[str, str]:
    """A short form of every name, no two of them alike.

    >>> shorten(["one", "a-long-name-of-a-model", "a-long-name-of-another"], 12)
    {'one': 'one', 'a-long-name-of-a-model': 'a-lon…-model', 'a-long-name-of-another': 'a-lon…nother'}
    """
    different = list(dict.fromkeys(names))
    for tail in (most // 2, most - 4, 2, most // 4):
        short = [middle_cut(name, most, tail=tail) for name in different]
        if len(set(short)) == len(short):
            return dict(zip(different, short, strict=True))
    distinct = _cut_to_differences(different, most)
    if len(set(distinct.values())) == len(distinct):
        return distinct
    room = most - len(str(len(different))) - 3
    return {
        name: name if len(name) <= most else f"{middle_cut(name, room)} ({place})"
        for place, name in enumerate(different, 1)
    }


def _cut_to_differences(names: Sequence[str], most: int) -> dict[str, str]:
    """Names cut in the middle, or where that leaves several alike, from where these begin to differ.

    >>> list(_cut_to_differences(["claude-3-5-haiku-20241022", "claude-3-5-sonnet-20241022"], 12).values())
    ['…haiku-2024…', '…sonnet-202…']
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(middle_cut(name, most), []).append(name)
    short: dict[str, str] = {}
    for cut, group in alike.items():
        start = len(_shared_start(group))
        rests = {name: name[start:] for name in group}
        whole = max(map(len, rests.values())) < most
        ends = {name: f"…{rest}" if whole else f"…{rest[: most - 2]}…" for name, rest in rests.items()}
        short |= {group[0]: cut} if len(group) == 1 else ends
    return {name: short[name] for name in names}


NAME_LENGTH = 40
"""Characters of a name in sentences and tables on several systems."""

LONG_NAME = 16
"""Characters up to which names are short enough to be shown whole."""

_SEPARATORS = "/\\_-.:| "


def names_in_short(names: Sequence[str]) -> tuple[dict[str, str], str]:
    """Short forms of names, of several without the beginning and the end that all share, and a sentence on those.

    What is shared ends, or begins, at a separator.

    >>> short, said = names_in_short(["runs/mmlu_llama-3-70b_cot", "runs/mmlu_qwen-2-72b_cot", "runs/mmlu_gemma-2_cot"])
    >>> list(short.values()), said
    (['llama-3-70b', 'qwen-2-72b', 'gemma-2'], 'names share the prefix "runs/mmlu_" and the suffix "_cot"')
    """
    prefix = suffix = ""
    if len(names) > 1 and max(map(len, names)) > LONG_NAME:
        prefix, suffix = _shared_start(names), _shared_start([name[::-1] for name in names])[::-1]
        if min(map(len, names)) <= len(prefix) + len(suffix):
            suffix = ""
    bare = {name: name[len(prefix) : len(name) - len(suffix)] for name in names}
    cut = shorten(list(bare.values()), NAME_LENGTH)
    parts = [f'the {kind} "{part}"' for kind, part in (("prefix", prefix), ("suffix", suffix)) if part]
    said = f"names share {listed(parts)}" if parts else ""
    return {name: cut[part] for name, part in bare.items()}, said


def _shared_start(names: Sequence[str]) -> str:
    """What all names begin with, up to a separator that stands neither in brackets nor in a number.

    >>> _shared_start(["model (tool-0.3.9_a)", "model (tool-0.3.12_b)"]), _shared_start(["run-v1.2/a", "run-v1.3/b"])
    ('model ', 'run-')
    """
    alike = takewhile(lambda column: len(set(column)) == 1, zip(*names, strict=False))
    shared = "".join(column[0] for column in alike)
    ends = (place for place, mark in enumerate(shared, start=1) if mark in _SEPARATORS)
    good = (end for end in ends if _are_closed(shared[:end]) and not _is_decimal(names, end - 1))
    return shared[: max(good, default=0)]


def _are_closed(text: str) -> bool:
    """Whether as many brackets open as close."""
    return all(text.count(left) == text.count(right) for left, right in ("()", "[]", "{}"))


def _is_decimal(names: Sequence[str], place: int) -> bool:
    """Whether the character at this place is a point between digits in any of the names."""
    around = (name[max(place - 1, 0) : place + 2] for name in names)
    return any(len(part) == 3 and part[1] == "." and part[0].isdigit() and part[2].isdigit() for part in around)


def middle_cut(name: str, most: int = MOST_CHARACTERS, *, tail: int | None = None) -> str:
    """A name of at most `most` characters, the last `tail` of them its own end.

    >>> middle_cut("meta-llama/llama-3-70b", 11)
    'meta-…3-70b'
    """
    if len(name) <= most:
        return name
    end = most // 2 if tail is None else tail
    return f"{name[: most - 1 - end]}…{name[len(name) - end :]}"


def natural_order(name: str | None) -> list[tuple[bool, int, str]]:
    """A key that sorts names as people do, numbers in them by their size.

    >>> sorted(["d1/10", "d1/9", "d1"], key=natural_order)
    ['d1', 'd1/9', 'd1/10']
    """
    pieces = re.split(r"(\d{1,18})", name or "")
    return [(place % 2 == 0, int(piece) if place % 2 else 0, piece) for place, piece in enumerate(pieces)]


def percent(rate: float) -> str:
    """A rate in percent, with as many decimals as it needs to differ from 0 and 100.

    >>> percent(0.2422), percent(0.0004), percent(1.0), percent(0.2)
    ('24.2 %', '0.04 %', '100 %', '20 %')
    """
    if math.isnan(rate):
        return "undefined"
    shown = 100 * rate
    decimals = 1 if 0.1 <= shown <= 99.9 or shown in (0.0, 100.0) else 2
    return f"{shown:.{decimals}f}".rstrip("0").rstrip(".") + " %"


def number(value: float) -> str:
    """A number in four significant digits.

    >>> number(0.123456), number(1234.5), number(float("nan"))
    ('0.1235', '1234', 'undefined')
    """
    return "undefined" if math.isnan(value) else f"{value:.4g}"


def short(value: float) -> str:
    """A number in three digits.

    >>> short(-1.23456), short(math.nan)
    ('−1.23', 'undefined')
    """
    return "undefined" if math.isnan(value) else f"{value:.3g}".replace("-", "−")


def signed(value: float) -> str:
    """A number in three digits with its sign.

    >>> signed(0.5), signed(-0.5), signed(0.0)
    ('+0.5', '−0.5', '0')
    """
    return f"+{short(value)}" if value > 0 else short(value + 0.0)


def interval(figure: Figure, write: Callable[[float], str] = percent) -> str:
    """The ends of a figure's interval."""
    return ends(figure.low, figure.high, write) or "no interval"


def ends(low: float, high: float, write: Callable[[float], str]) -> str:
    """The ends of an interval; empty where there is none.

    >>> ends(0.1, 0.25, percent), ends(math.nan, math.nan, percent)
    ('10 % to 25 %', '')
    """
    return "" if math.isnan(low) or math.isnan(high) else f"{write_signed(low, write)} to {write_signed(high, write)}"


def write_signed(value: float, write: Callable[[float], str]) -> str:
    """A number in words, without a minus where it rounds to zero.

    >>> write_signed(-0.00001, "{:+.4f}".format), write_signed(-0.1, "{:+.4f}".format)
    ('+0.0000', '-0.1000')
    """
    text = write(value)
    return text if any(digit in text for digit in "123456789") else write(abs(value))


def with_interval(
    value: float | str,
    low: float,
    high: float,
    *details: str,
    write: Callable[[float], str] = short,
    missing: str = "",
) -> str:
    """A number, or its text, with its interval and details such as a p-value; `missing` stands for no interval.

    >>> with_interval(1.2345, 1.1, 1.3, "p = 0.02"), with_interval(0.5, math.nan, math.nan, missing="none")
    ('1.23 (1.1 to 1.3, p = 0.02)', '0.5 (none)')
    """
    text, span = value if isinstance(value, str) else write_signed(value, write), ends(low, high, write) or missing
    return f"{text} ({', '.join([span, *details])})" if span else text


def p_value(p: float) -> str:
    """A p-value as one reads it.

    >>> p_value(0.0312), p_value(1e-9)
    ('p = 0.031', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def tabled_p(p: float) -> str:
    """A p-value in a column of them; a dash where nothing was tested.

    >>> tabled_p(0.0312), tabled_p(1e-9), tabled_p(math.nan)
    ('0.031', '< 0.001', '–')
    """
    return "–" if math.isnan(p) else p_value(p).removeprefix("p ").removeprefix("= ")


def listed(parts: Sequence[str]) -> str:
    """Names or phrases as a sentence lists them.

    >>> listed(["A"]), listed(["A", "B", "C"])
    ('A', 'A, B and C')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def first_names(names: Sequence[str], most: int = 8, *, quote: str = '"') -> str:
    """The first names, in quotes, and how many more there are.

    >>> first_names(["A", "B", "C"], 2), first_names(["A", "B"], 2, quote="")
    ('"A", "B" and 1 more', 'A, B')
    """
    shown = ", ".join(f"{quote}{name}{quote}" for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def table_line(title: str, rows: int, what: str, systems: Sequence[str]) -> str:
    """What a table holds, in one line.

    >>> table_line("Responses", 1200, "rows", ["a", "b"])
    '<Responses: 1,200 rows of a, b>'
    """
    return f"<{title}: {rows:,} {what} of {first_names([middle_cut(one) for one in systems], 4, quote='')}>"


def rounded_up(count: int) -> str:
    """A count rounded up to two digits.

    >>> rounded_up(1234)
    '1,300'
    """
    scale = 10 ** max(0, len(str(count)) - 2)
    return f"{math.ceil(count / scale) * scale:,}"


def count(value: float) -> str:
    """A count with thousands separated; a fraction only where weights make one.

    >>> count(5500), count(2.5)
    ('5,500', '2.5')
    """
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-6 else f"{value:,.4g}"


def cutoff(threshold: float) -> str:
    """What a threshold returns, in words.

    >>> cutoff(0.51234567), cutoff(float("nan"))
    ('confidence ≥ 0.51234567', 'nothing returned')
    """
    return "nothing returned" if math.isnan(threshold) else f"confidence ≥ {threshold_text(threshold)}"


def inputs(sizes: list[int], *, clustered: bool = False) -> str:
    """How many inputs stand behind a figure.

    >>> inputs([200, 1500])
    'n = 200 to 1,500 inputs'
    """
    least, most = min(sizes), max(sizes)
    span = count(least) if least == most else f"{count(least)} to {count(most)}"
    return f"n = {span} inputs" + (", drawn by dialogue" if clustered else "")


def span(start: float, stop: float) -> str:
    """A range of rates, as one rate where its ends read the same.

    >>> span(0.1, 0.25), span(0.64501, 0.64502)
    ('from 10 % to 25 %', 'at 64.5 %')
    """
    ends = percent(start), percent(stop)
    return f"at {ends[0]}" if ends[0] == ends[1] else f"from {ends[0]} to {ends[1]}"


def tabled_percent(rate: float) -> str:
    """A rate in percent with one decimal, so that a column lines up; more only where it would read as 0 or 100.

    >>> tabled_percent(0.28), tabled_percent(0.0), tabled_percent(0.0004)
    ('28.0 %', '0.0 %', '0.04 %')
    """
    plain = rate in (0.0, 1.0) or 0.0005 <= rate <= 0.9995
    return f"{100 * rate:.1f} %" if plain else percent(rate)


def tabled_ends(low: float, high: float) -> str:
    """The ends of an interval of a rate in percent with one decimal; more only where both ends would read the same.

    >>> tabled_ends(0.28, 0.35), tabled_ends(0.0, 0.0003), tabled_ends(math.nan, math.nan)
    ('28.0 to 35.0', '0.00 to 0.03', 'no interval')
    """
    if math.isnan(low) or math.isnan(high):
        return "no interval"
    apart = (digits for digits in (1, 2, 3) if low == high or f"{100 * low:.{digits}f}" != f"{100 * high:.{digits}f}")
    digits = next(apart, 4)
    return f"{100 * low:.{digits}f} to {100 * high:.{digits}f}"


def aligned(values: Sequence[float]) -> list[str]:
    """Numbers with as many decimals as give the greatest of them three digits, but at least as whole numbers.

    >>> aligned([1.2, 0.03456, math.nan]), aligned([22.31, 120.0])
    (['1.20', '0.03', 'undefined'], ['22', '120'])
    """
    greatest = max((abs(value) for value in values if math.isfinite(value)), default=1.0)
    decimals = min(max(2 - math.floor(math.log10(greatest or 1.0)), 0), 6)
    return ["undefined" if math.isnan(value) else f"{value:.{decimals}f}".replace("-", "−") for value in values]
