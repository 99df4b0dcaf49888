"""What a page is: a function from a query to a document, shown as HTML by a template and as JSON as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from demur.apps.web.site import Query, Site


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page has to show: the document is its JSON twin, and all that the template knows."""

    title: str
    document: dict[str, Any]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Page:
    """A page at a path, with its template, its place in the navigation, and its JSON twin at the path with `.json`."""

    path: str
    template: str
    view: Callable[[Site, Query], Shown]
    heading: str = ""
    """What the navigation calls it; pages without one are reached from others."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that changes the store: a path, a method, and a function from a query and a JSON body to an answer."""

    path: str
    method: str
    act: Callable[[Site, Query, dict[str, Any]], dict[str, Any]]
    status: int = field(default=200)
