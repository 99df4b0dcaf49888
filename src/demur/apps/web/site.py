"""What every page is and works with: the query, the store, the worker, preferences and settings of this server."""

from __future__ import annotations

import hashlib
import json
import math
import re
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import anyio
import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from demur import __version__
from demur.apps.web.worker import UNLESS_TOLD, Limits, Worker, WorkerJob
from demur.core.io.untrusted import read_json
from demur.core.io.writing import write_whole
from demur.core.jobs import Field, Option, fields_of
from demur.core.options import Sampling
from demur.core.show.html import number_cell
from demur.core.show.results import threshold_text
from demur.core.show.safe import chart_safe, json_text, visible
from demur.errors import DataError, DemurError, UsageError
from demur.reports.jobs import report

if TYPE_CHECKING:
    from demur.store.records import Run
    from demur.store.rows import RunRows
    from demur.store.runs import Store


THEMES = ("light", "dark")
"""What the look of pages may be set to; without one it is the system's."""

_ESCAPED = re.compile(r"\\[ubf]")
"""How control characters stand in JSON."""


@dataclass(frozen=True, slots=True)
class Query:
    """The values of a request: those in its path and, in order, those in its query."""

    path: Mapping[str, str]
    pairs: Sequence[tuple[str, str]]

    def several(self, name: str) -> tuple[str, ...]:
        """All values of a name; a name may be repeated."""
        return tuple(value for key, value in self.pairs if key == name and value)

    def text(self, name: str, default: str = "") -> str:
        """The last value of a name."""
        given = self.several(name)
        return given[-1] if given else self.path.get(name, default)

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """One of the values that a name may have."""
        value = self.text(name, default)
        if value not in allowed:
            raise UsageError(f'{name} is one of {", ".join(allowed)}; got "{value}"')
        return value

    def number(
        self, name: str, default: float | None = None, *, low: float = -math.inf, high: float = math.inf
    ) -> float | None:
        """A number within bounds; the default where none is given."""
        text = self.text(name)
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise UsageError(f'{name} must be a number; got "{text}"')
        if not low <= value <= high:
            raise UsageError(f"{name} must lie between {low:g} and {high:g}; got {text}")
        return value

    def whole(self, name: str, default: int, *, low: int = 0, high: int = 1_000_000_000) -> int:
        """A whole number within bounds."""
        value = self.number(name, float(default), low=low, high=high)
        if value is None or value != int(value):
            raise UsageError(f"{name} must be a whole number; got {self.text(name)}")
        return int(value)

    def where(self, name: str = "where", *, columns: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
        """Filters given as `column=value`; of a column whose own name has the sign, all of its name is the column."""
        pairs = []
        for text in self.several(name):
            signed = [column for column in columns if "=" in column and text.startswith(f"{column}=")]
            column, equals, value = text.partition("=")
            if not equals:
                raise UsageError(f'{name} takes column=value; got "{text}"')
            longest = max(signed, key=len, default=column)
            pairs.append((longest, text[len(longest) + 1 :] if signed else value))
        return tuple(pairs)


FILE = "store.settings.json"

MOST_SETTINGS = 1 << 16
"""Bytes that the settings may take."""

MOST_PAGE_REPLICATES = 20_000
"""Replicates beyond which nobody would wait for a page."""


def preference_fields() -> dict[str, Field]:
    """The settings as `demur report` declares its options, with the limits of a server that many wait for."""
    declared = {one.name: one for one in fields_of(report)}
    return {
        "level": declared["level"],
        "replicates": replace(declared["replicates"], maximum=MOST_PAGE_REPLICATES),
        "seed": replace(declared["seed"], maximum=2**32 - 1),
        "at": replace(declared["at_nonreturn"], name="at", maximum=0.99),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences(Sampling):
    """How uncertainty is computed, and where curves are read, unless a page is asked otherwise.

    >>> Preferences().with_changes({"level": 0.9, "seed": 7}).level
    0.9
    """

    at: float = 0.2
    """The non-return rate at which pages open."""

    def __post_init__(self) -> None:
        """Refuses what no result can be made with."""
        for name, one in preference_fields().items():
            allowed = Option("", minimum=one.minimum, maximum=one.maximum, above=one.above, below=one.below)
            if not allowed.within(getattr(self, name)):
                raise UsageError(f"{name} must be {allowed.range}; got {getattr(self, name):g}")

    def with_changes(self, given: Mapping[str, Any]) -> Preferences:
        """The preferences with some of them changed."""
        if unknown := sorted(given.keys() - asdict(self).keys()):
            raise UsageError(f"there is no setting {', '.join(unknown)}; there are {', '.join(asdict(self))}")
        numbers: dict[str, Any] = {}
        for name, value in given.items():
            whole = preference_fields()[name].kind == "whole"
            try:
                number = (int if whole else float)(value) if math.isfinite(value) else None
            except (TypeError, OverflowError):  # no number, or one beyond all bounds
                number = None
            if number is None or number != value or isinstance(value, bool):
                kind = "whole number" if whole else "number"
                raise UsageError(f"{name} must be a {kind}; got {json.dumps(value)[:40]}")
            numbers[name] = number
        return replace(self, **numbers)

    def to_dict(self) -> dict[str, Any]:
        """The preferences as plain values."""
        return asdict(self)


def read_preferences(root: Path) -> tuple[Preferences, str]:
    """The preferences kept in a store, and what was wrong with them; where they cannot be read, the defaults."""
    path = root / FILE
    if not path.exists():
        return Preferences(), ""
    try:
        fields: list[Any] = [(name, float | None, None) for name in preference_fields()]
        form = msgspec.defstruct("KeptSettings", fields, forbid_unknown_fields=True, omit_defaults=True)
        return Preferences().with_changes(msgspec.to_builtins(read_json(path, form, "settings", MOST_SETTINGS))), ""
    except DemurError as fault:
        return Preferences(), f"{path.name} cannot be used ({fault}); the settings have their defaults"


def write_preferences(root: Path, preferences: Preferences) -> None:
    """Keep the preferences in a store."""
    write_whole(root / FILE, json.dumps(preferences.to_dict(), indent=2) + "\n")


def message_of(fault: DemurError) -> str:
    """The message of a fault for a page, which names options without backticks."""
    return re.sub(r"`(\w+)`", r"\1", str(fault))


RUNS_AT_HAND = 4
"""Runs whose confidences stay in memory for quick looks at their rows."""

MOST_UPLOADED = 2 * 1024**3
"""Bytes of an upload unless the server is told otherwise."""


class JsonAnswer(JSONResponse):
    """JSON in which characters that show nothing are escaped, as browsers show it too."""

    def render(self, content: Any) -> bytes:
        """The document as bytes."""
        return json_text(content, indent=None).encode()


LEAST_PACE = 1000
"""Bytes a second that the body of a request must bring, on the average of the last seconds."""

LONGEST_PAUSE = 20.0
"""Seconds that a body may bring nothing, at its beginning too."""


async def steadily(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks of a body that goes on: one that trickles would keep others out.

    What comes buys time, up to the longest pause, so that time in which we are slow counts for nobody.
    """
    left = LONGEST_PAUSE
    while True:
        began = anyio.current_time()
        try:
            with anyio.fail_after(left):
                chunk = await anext(stream, None)
        except TimeoutError:
            pace = f"at least {LEAST_PACE:,} bytes a second, with pauses of at most {LONGEST_PAUSE:g} seconds"
            raise HTTPException(408, f"this comes too slowly; {pace}") from None
        if chunk is None:
            return
        left = min(left - (anyio.current_time() - began) + len(chunk) / LEAST_PACE, LONGEST_PAUSE)
        yield chunk


class Waiting(Exception):
    """A page needs a result that is being made."""

    def __init__(self, job: WorkerJob, about: str) -> None:
        super().__init__(about)
        self.job, self.about = job, about


@dataclass(slots=True)
class Site:
    """The store and the work behind one server."""

    store: Store
    worker: Worker
    most_uploaded: int = MOST_UPLOADED
    settings: dict[str, Any] = field(default_factory=dict)
    """What the server was started with, to be shown."""
    preferences: Preferences = field(default_factory=Preferences)
    """What new results are made with."""
    problems: tuple[str, ...] = ()
    """What was found wrong at the start, the store's own problems apart."""
    _rows: OrderedDict[str, RunRows] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def result(self, task: str, runs: Sequence[Run], about: str, **asked: Any) -> dict[str, Any]:
        """The document that a task makes of runs: from the cache, or else `Waiting` while the worker makes it.

        The task is given the ids of the `runs`, what is `asked`, and how to compute uncertainty as `sampling`.
        """
        for run in runs:
            if (changed := self.store.change_of(run)) is not None:  # what was kept is of another lake
                raise DataError(changed)
        wanted = {"sampling": self.preferences.sampling, **asked}
        signature = signature_of(task, [run.id for run in runs], [run.name for run in runs], wanted)
        if (content := self.store.cached(signature)) is not None:
            document: dict[str, Any] = json.loads(content)
            return document
        if (unsaved := self.worker.unsaved_result(signature)) is not None:
            return unsaved
        given = {"runs": [run.id for run in runs], **wanted}
        raise Waiting(self.worker.start(task, given, signature=signature, about=about), about)

    def rows(self, run: Run) -> RunRows:
        """The rows of a run, of which the last few runs' confidences are kept in memory."""
        self.store.rows_path(run)  # refused where they are no longer what they were
        with self._lock:
            if run.id in self._rows:
                self._rows.move_to_end(run.id)
                return self._rows[run.id]
        read = self.store.rows(run)
        with self._lock:
            self._rows[run.id] = read
            while len(self._rows) > RUNS_AT_HAND:
                self._rows.popitem(last=False)
            return read

    def forget_rows(self, run: Run) -> None:
        """Let go of the rows of a run that is no more."""
        with self._lock:
            self._rows.pop(run.id, None)

    def change_preferences(self, given: dict[str, Any]) -> None:
        """Change what new results are made with, and keep it."""
        changed = self.preferences.with_changes(given)
        write_preferences(self.store.root, changed)
        self.preferences = changed


def site_of(store: Store, limits: Limits = UNLESS_TOLD, **options: Any) -> Site:
    """A site over a store, with the preferences kept there and a worker of its own."""
    kept, fault = read_preferences(store.root)
    worker = Worker(store.root, limits=limits)
    return Site(store, worker, preferences=kept, problems=(fault,) if fault else (), **options)


def signature_of(task: str, runs: Sequence[str], names: Sequence[str], asked: dict[str, Any]) -> str:
    """The name of a result: what was asked, of which data, by which version."""
    text = json.dumps([__version__, task, list(runs), list(names), asked], sort_keys=True)
    return f"{task.rpartition(':')[2]}-{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class PageContent:
    """The content of a page: the document is its JSON twin, and all that the template knows."""

    title: str
    document: dict[str, Any]
    status: int = 200
    download: str = ""
    """Name of the file where the document has its HTML."""


class Page(ABC):
    """A page at a path, with its template; its JSON twin is at the path with `.json`."""

    path: ClassVar[str]
    template: ClassVar[str]
    heading: ClassVar[str] = ""
    """What the navigation calls it; pages without one are reached from others."""

    @abstractmethod
    def show(self, site: Site, query: Query) -> PageContent:
        """The content for a query; `Waiting` is raised while the worker computes what it needs."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that changes the store: a path, a method, and a function from a query and a JSON body to an answer."""

    path: str
    method: str
    act: Callable[[Site, Query, dict[str, Any]], dict[str, Any]]
    status: int = 200


class Linked(Protocol):
    """What the navigation leads to; without a heading it is not there."""

    @property
    def path(self) -> str:
        """Where it is."""

    @property
    def heading(self) -> str:
        """What it is called."""


def render(
    template: str,
    title: str,
    document: dict[str, Any],
    *,
    navigation: Sequence[Linked] = (),
    twin: str = "",
    path: str = "",
    theme: str = "",
    home: str = "/runs",
    package: str = "demur.apps.web",
) -> str:
    """A page from its template; one of another `package` may extend those that are here."""
    about = {
        "title": title,
        "document": document,
        "twin": twin,
        "path": path,
        "theme": theme if theme in THEMES else "",
        "navigation": [page for page in navigation if page.heading],
        "version": __version__,
        "home": home,
    }
    return templates(package).get_template(template).render(about)


@cache
def templates(package: str = "demur.apps.web") -> Environment:
    """The template engine with the filters that templates use."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, "demur.apps.web"))]),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    shown = {"percent": percent, "decimals": decimals, "count": "{:,}".format, "megabytes": megabytes, "moment": moment}
    environment.filters.update(shown, data=data_block, raw=escape, threshold=threshold_text, number_cell=number_cell)
    return environment


def _visible(value: Any) -> Any:
    """What stands on a page; the values of forms, which are sent back as they are, go through the filter `raw`."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def data_block(value: Any) -> str:
    r"""JSON for an element of a page, which cannot end the element it stands in, and whose texts can be shown.

    >>> data_block("</script>\x1b")
    '"\\u003c/script\\u003e⟨U+001B⟩"'
    """
    text = _compact(value)
    if visible(text) != text or _ESCAPED.search(text):  # most have no such text, and to look at every number takes long
        text = _compact(chart_safe(value))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def percent(value: float | None, digits: int = 1) -> str:
    """A rate in percent, or a dash where there is none.

    >>> percent(0.123), percent(None)
    ('12.3 %', '–')
    """
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def decimals(value: float | None) -> str:
    """A number with four decimals, or a dash where there is none.

    >>> decimals(0.08268), decimals(None)
    ('0.0827', '–')
    """
    return "–" if value is None else f"{value:.4f}"


def megabytes(value: int) -> str:
    """A size in megabytes, or in kilobytes where it is less than one.

    >>> megabytes(2 * 1024**3), megabytes(1536), megabytes(1_500_000)
    ('2,048 MB', '1.5 kB', '1.4 MB')
    """
    if value < 1024**2:
        return f"{value / 1024:.1f} kB"
    size = value / 1024**2
    return f"{size:.1f} MB" if size < 10 else f"{size:,.0f} MB"


def moment(text: str) -> str:
    """A time as ISO 8601 has it, to the minute, in words that need no explanation.

    >>> moment("2031-05-04T12:30:59+00:00")
    '2031-05-04 12:30 UTC'
    """
    return f"{text[:10]} {text[11:16]} UTC"
