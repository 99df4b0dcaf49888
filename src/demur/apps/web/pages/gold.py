"""Gold graphs: how far systems are from people at a task that is made harder, and what the gap is worth."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

from demur.apps.web.pages.runs import choosing, run_values
from demur.apps.web.site import Page, PageContent, Query, Site, message_of
from demur.core.jobs import fields_of, values_of
from demur.core.show.results import Step
from demur.errors import DemurError, UsageError
from demur.gold_standard.jobs import FitChoice, gold

if TYPE_CHECKING:
    from demur.gold_standard.cost import CostFunction
    from demur.gold_standard.trials import Trials
    from demur.store.runs import Store

LABELS = {
    "x": "What makes it harder",
    "y": "How well it went",
    "fit": "Curves",
    "components": "Separate components",
    "cost": "Cost",
    "direction": "Direction",
    "degree": "Degree of polynomials",
    "lower": "Lower bound of y",
    "upper": "Upper bound of y",
    "within": "Range of x",
    "gain": "Performance at which the cost is taken",
    "checks": "Wizards and convergence",
    "gold": "The gold standard (by default as the table says)",
}
"""The options of `demur gold` that the form offers, with their labels."""

OTHER_COLUMNS = ("performer", "role", "subject", "components", "study")
"""Columns that are never what is measured."""

LONGEST_COST = 500
"""Characters of a cost function."""


class GoldRunsPage(Page):
    """The runs of trials to choose from."""

    path, template = "/gold", "choice.html"
    heading = "Gold"

    def show(self, site: Site, query: Query) -> PageContent:
        """The studies that there are."""
        add = "Add a table of trials: a column performer, what makes it harder, and how well it went."
        runs = site.store.runs(kind="trials")
        return PageContent(
            "Gold graphs", choosing("/gold", "trials of a gold standard", runs, add=add, example="wizards")
        )


class GoldPage(Page):
    """Gold graphs of the trials of a run."""

    path, template = "/gold/{id}", "gold.html"

    def show(self, site: Site, query: Query) -> PageContent:
        """What the trials of a run show."""
        run = site.store.run(query.path["id"])
        if run.kind != "trials":
            raise UsageError(f'"{run.name}" is a run of {run.kind}; gold graphs are of trials')
        others = [site.store.run(one) for one in query.several("also")]
        if len(query.text("cost")) > LONGEST_COST:
            raise UsageError(f"a cost has at most {LONGEST_COST} characters; got {len(query.text('cost')):,}")
        given = values_of(gold, {name: query.several(name) for name in LABELS})
        columns = [name for name in run.columns if name not in OTHER_COLUMNS]
        performers = run.about.get("performers", [])
        declared = {one.name: asdict(one) for one in fields_of(gold)}
        offered = {"x": columns, "y": columns, "fit": list(get_args(FitChoice)), "gold": performers}
        form = {
            name: {**declared[name], "label": label, "choices": offered.get(name, list(declared[name]["choices"]))}
            for name, label in LABELS.items()
        }
        document: dict[str, Any] = {
            "run": run_values(run),
            "columns": columns,
            "performers": performers,
            "others": [run_values(one) for one in site.store.runs(kind="trials") if one.id != run.id],
            "also": [one.id for one in others],
            "form": form,
            "given": {name: query.several(name) for name in LABELS if query.several(name)},
            "changed": [name for name in given if query.several(name) != (str(form[name]["default"]).lower(),)],
            "x": given.get("x") or run.about.get("x", ""),
            "y": given.get("y") or run.about.get("y", ""),
        }
        runs = [run, *(one for one in others if one.id != run.id)]
        about = f"Fitting curves to the trials of {run.name}"
        result = site.result(f"{__name__}:gold_studies", runs, about, given=given)
        return PageContent(f"Gold graphs of {run.name}", {**document, **result})


READ = ("x", "y", "lower", "upper", "gold")
"""What says how trials are read; the other options say what is read from the curves."""


def gold_studies(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """What studies show of systems against their gold standards; or why they show nothing."""
    from demur.core.show.page import presentation_document
    from demur.gold_standard.presentation import of_gold

    try:
        options = given["given"]
        studies = _studies_of(store, given["runs"], {name: options[name] for name in READ if name in options})
        rest = {name: value for name, value in options.items() if name not in (*READ, "cost")}
        cost = _cost_of(options.get("cost", ""), studies)
        result = gold(*studies, cost=cost, **rest, **given["sampling"], step=step)
        step("drawing", 0, 1)
        return {"fault": None, "presentation": presentation_document(of_gold(result))}
    except DemurError as fault:
        return {"fault": message_of(fault), "presentation": None}


def _studies_of(store: Store, runs: list[str], changes: dict[str, Any]) -> list[Trials]:
    """The studies of the first run, read with changed options, and of further runs as they were added."""
    first, *others = (store.run(one) for one in runs)
    studies = [*store.trials(first, **changes), *(one for run in others for one in store.trials(run))]
    repeated = [one.study for one in studies if [other.study for other in studies].count(one.study) > 1]
    if repeated:
        raise UsageError(f'two studies are called "{repeated[0]}"; give one of the runs another name')
    return studies


def _cost_of(text: str, studies: list[Trials]) -> CostFunction | list[tuple[float, float]] | None:
    """What performance is worth: an expression in p, or points such as `0:0, 0.5:10, 1:40`; never a file."""
    from demur.gold_standard.cost import CostFunction, check_covers, parsed

    if not text.strip():
        return None
    if ":" in text:
        return [_point(part) for part in text.split(",")]
    try:
        parsed(text)
    except UsageError as fault:
        forms = "an expression in p, as 1000 * p ** 2, or points of performance and amount, as 0:0, 0.5:10, 1:40"
        raise UsageError(f"the cost: {fault}; a cost is {forms}") from None
    cost = CostFunction(expression=text.strip())
    for one in studies:
        if one.upper is not None:
            check_covers(cost, one.lower, one.upper)
    return cost


def _point(text: str) -> tuple[float, float]:
    performance, _, amount = text.partition(":")
    try:
        return float(performance), float(amount)
    except ValueError:
        raise UsageError(f'the points of a cost are numbers, as 0:0, 0.5:10, 1:40; got "{text.strip()}"') from None
