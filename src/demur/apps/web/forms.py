"""Fields of forms: what a job declares of an option is what a page asks for and takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from demur.apps.web.site import Query
from demur.core.jobs import fields_of, values_of


def form_of(
    job: Callable[..., Any], labels: Mapping[str, str], *, choices: Mapping[str, Sequence[str]] | None = None
) -> dict[str, dict[str, Any]]:
    """The fields of a form by the names of options, each with its label.

    `choices` are values that the page offers for an option that could be any text, such as the columns of a run.
    """
    declared = {one.name: one for one in fields_of(job)}
    offered = {name: declared[name].choices for name in labels} | dict(choices or {})
    return {
        name: {**asdict(declared[name]), "label": label, "choices": list(offered[name])}
        for name, label in labels.items()
    }


def form_values(job: Callable[..., Any], query: Query, names: Sequence[str]) -> dict[str, Any]:
    """The values of the options that a form was filled with; what was left empty is left to the job."""
    return values_of(job, {name: query.several(name) for name in names})
