"""What to cite: the literature behind each command, as BibTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from demur.core.io.columns import nearest
from demur.errors import UsageError

_ENTRY = re.compile(r"@(\w+)\{(\w+),\n(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"^  (\w+) *= \{(.*)\},$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reference:
    """An entry of BibTeX: its kind, its key and its fields."""

    kind: str
    key: str
    fields: dict[str, str]
    commands: tuple[str, ...] = ()
    """The commands, by their first word, that use the method; none for data and for background."""

    def bibtex(self) -> str:
        """The entry as text."""
        lines = [f"  {name} = {{{value}}}," for name, value in self.fields.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {"key": self.key, "type": self.kind, **self.fields, "commands": list(self.commands)}


def all_references() -> list[Reference]:
    """Every entry of `references.bib`, of which the keywords are commands."""
    text = files("demur.core.show").joinpath("references.bib").read_text(encoding="utf-8")
    references = []
    for kind, key, body in _ENTRY.findall(text):
        fields = dict(_FIELD.findall(body))
        commands = tuple(filter(None, fields.pop("keywords", "").split(", ")))
        references.append(Reference(kind, key, fields, commands))
    return references


def references_of(*commands: str) -> list[Reference]:
    """What to cite for these commands, or for all: demur itself, then the methods that they use."""
    from demur import __version__

    own = {"author": "{The demur authors}", "title": "demur", "version": __version__}
    known = all_references()
    names = sorted({name for one in known for name in one.commands})
    wanted = [name.split()[0] for name in commands if name.strip()]
    for name in wanted:
        if name not in names:
            raise UsageError(f'there is no literature for "{name}" ({nearest(name, names)})')
    chosen = [one for one in known if not wanted or set(wanted) & set(one.commands)]
    return [Reference("misc", "demur", own), *chosen]


def cite(*commands: str) -> str:
    """What to cite, as BibTeX: demur, and the methods that commands such as "compare" use; without any, all of them.

    >>> "artstein2011" in cite("score"), "paek2001" in cite("score")
    (True, False)
    """
    return "\n".join(one.bibtex() for one in references_of(*commands))
