"""What a page is: a class that makes a document from a query; a template shows it as HTML, and it is the JSON twin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from demur.apps.web.site import Query, Site


@dataclass(frozen=True, slots=True)
class PageContent:
    """The content of a page: the document is its JSON twin, and all that the template knows."""

    title: str
    document: dict[str, Any]
    status: int = 200


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
