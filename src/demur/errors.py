"""What can go wrong that the user can mend."""


class DemurError(Exception):
    """A fault with a message written for the person who can mend it."""


class DataError(DemurError):
    """Input that breaks a rule: where it stands, the rule, what was found, how to mend it.

    >>> str(DataError("must be a number", where="run.jsonl:17: confidence", got="high", fix="map another column"))
    'run.jsonl:17: confidence must be a number; got "high" (map another column)'
    """

    def __init__(self, rule: str, *, where: str = "", got: object = None, fix: str = "") -> None:
        self.where = where
        self.rule = rule
        self.got = got
        self.fix = fix
        super().__init__(_sentence(rule, where, got, fix))


class UsageError(DemurError):
    """A request that cannot be met as asked: an option out of range, two options that exclude each other."""


class Interrupted(DemurError):
    """The user asked to stop."""


def _sentence(rule: str, where: str, got: object, fix: str) -> str:
    parts = [f"{where} {rule}" if where else rule]
    if got is not None:
        parts.append(f'; got "{got}"' if isinstance(got, str) else f"; got {got}")
    if fix:
        parts.append(f" ({fix})")
    return "".join(parts)
