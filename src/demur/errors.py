"""What can go wrong that the user can mend."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class DemurError(Exception):
    """A fault with a message written for the person who can mend it."""


class DataError(DemurError):
    """Input that breaks a rule: where it stands, the rule, what was found, how to mend it.

    >>> str(DataError("must be a number", where="run.jsonl:17: confidence", got="high", fix="map another column"))
    'run.jsonl:17: confidence must be a number; got "high" (map another column)'

    `row` is the number of the row in its source, where the fault is that of one. `faults` are all that were found
    together; this one is the first of them.
    """

    def __init__(
        self, rule: str, *, where: str = "", got: object = None, fix: str = "", row: int | None = None
    ) -> None:
        self.where = where
        self.rule = rule
        self.got = got
        self.fix = fix
        self.row = row
        self.faults: tuple[DataError, ...] = (self,)
        super().__init__(_sentence(rule, where, got, fix))

    @classmethod
    def joined(cls, faults: Iterable[DataError]) -> DataError:
        """Several faults as one, a line each: first those of no row, then by row; one that comes twice is told once.

        >>> bad = DataError("must be 0 or more", where="a.csv:9: weight", row=7)
        >>> print(DataError.joined([bad, DataError("needs a column id"), bad]))
        needs a column id
        a.csv:9: weight must be 0 or more
        """
        different = {str(one): one for fault in faults for one in fault.faults}
        every = sorted(different.values(), key=lambda one: -1 if one.row is None else one.row)
        first = every[0]
        whole = cls(first.rule, where=first.where, got=first.got, fix=first.fix, row=first.row)
        whole.faults = tuple(every)
        whole.args = ("\n".join(map(str, every)),)
        return whole

    def rewritten(self, change: Callable[[str], str]) -> DataError:
        """The fault, and all that were found with it, with every text but the value changed."""
        return DataError.joined(
            DataError(change(one.rule), where=change(one.where), got=one.got, fix=change(one.fix), row=one.row)
            for one in self.faults
        )


class UsageError(DemurError):
    """A request that cannot be met as asked: an option out of range, two options that exclude each other."""


class Interrupted(DemurError):
    """The user asked to stop."""


def faults_of(checks: Iterable[Callable[[], object]]) -> list[DataError]:
    """The faults that checks raise, each run whatever the others find."""
    faults = []
    for check in checks:
        try:
            check()
        except DataError as fault:
            faults.append(fault)
    return faults


def _sentence(rule: str, where: str, got: object, fix: str) -> str:
    parts = [f"{where} {rule}" if where else rule]
    if got is not None:
        parts.append(f'; got "{got}"' if isinstance(got, str) else f"; got {got}")
    if fix:
        parts.append(f" ({fix})")
    return "".join(parts)
