"""Work on studies with a gold standard: curves, impurity, verdicts, complexity, cost and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from demur.analyses.gold.cost import CostFunction, check_covers, cost_points
from demur.analyses.gold.domains import GoldStudies
from demur.analyses.gold.expressions import parsed
from demur.analyses.gold.fitting import FitOptions
from demur.analyses.gold.study import GoldOptions, analyse
from demur.data.trials import Trials
from demur.errors import DemurError, UsageError
from demur.show import Step
from demur.views.documents import presentation_document
from demur.views.gold_presentation import of_gold

if TYPE_CHECKING:
    from demur.store.runs import Store

READ = ("x", "y", "lower", "upper")
"""What of a request says how trials are read; others say what is read from the curves."""

FORMS = "a cost is an expression in p, as 1000 * p ** 2, or points of performance and amount, as 0:0, 0.5:10, 1:40"


def gold(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """What studies show of systems against their gold standards; or why they show nothing."""
    try:
        found = _trials(store, given)
        options = _options(given)
        studies = GoldStudies(analyse(one, options.with_cost(cost_of(given["cost"], one)), step=step) for one in found)
        step("drawing", 0, 1)
        return {"fault": None, "presentation": presentation_document(of_gold(studies))}
    except DemurError as fault:
        return {"fault": str(fault), "presentation": None}


def _trials(store: Store, given: dict[str, Any]) -> list[Trials]:
    """The studies of the first run, read as asked, and of further runs as they were added."""
    first, *others = (store.run(one) for one in given["runs"])
    changes = {name: given[name] for name in READ if given[name] not in ("", None)}
    named = {"gold": tuple(given["gold"])} if given["gold"] else {}
    studies = [*store.trials(first, **changes, **named), *(one for run in others for one in store.trials(run))]
    repeated = [one.study for one in studies if [other.study for other in studies].count(one.study) > 1]
    if repeated:
        raise UsageError(f'two studies are called "{repeated[0]}"; give one of the runs another name')
    return studies


def _options(given: dict[str, Any]) -> GoldOptions:
    return GoldOptions(
        fit=FitOptions(kind=given["fit"], direction=given["direction"], degree=given["degree"]),
        within=_span(given["within"]),
        components=given["components"],
        gain=_span(given["gain"]),
        checks=given["checks"],
        **given["sampling"],
    )


def _span(ends: list[float] | None) -> tuple[float, float] | None:
    return None if ends is None else (ends[0], ends[1])


def cost_of(text: str, trials: Trials) -> CostFunction | None:
    """What performance is worth, from an expression in p, or from points as `0:0, 0.5:10, 1:40`; never from a file."""
    if not text.strip():
        return None
    if ":" in text:
        return cost_points([_point(part) for part in text.split(",")], lower=trials.lower, upper=trials.upper)
    try:
        parsed(text)
    except UsageError as fault:
        points = (
            "a cost is an expression in p, as 1000 * p ** 2, or points of performance and amount, as 0:0, 0.5:10, 1:40"
        )
        raise UsageError(f"the cost: {fault}; {points}") from None
    cost = CostFunction(expression=text.strip())
    if trials.upper is not None:
        check_covers(cost, trials.lower, trials.upper)
    return cost


def _point(text: str) -> tuple[float, float]:
    performance, _, amount = text.partition(":")
    try:
        return float(performance), float(amount)
    except ValueError:
        raise UsageError(f'the points of a cost are numbers, as 0:0, 0.5:10, 1:40; got "{text.strip()}"') from None
