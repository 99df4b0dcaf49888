"""How the experiments on understanding are shown: the comparison, with what was trained and what was done to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from demur.analyses.understanding.experiments import Experiment
from demur.data.wording import Wording
from demur.views import words
from demur.views.numbers import tabled_percent
from demur.views.presentation import Presentation, Table, drawing, of_comparison, region_of

TITLES = {
    "tokenizers": "Tokenizers for questions that were misheard",
    "growth": "A character that grows by other domains",
    "gate": "Two stages of understanding against one",
}

MOST_BANDS = 4
"""Systems up to which one plot shows the bands of all."""

FLATTERS = (
    "The recogniser is simulated: it takes words for others that sound like them, which flatters tokens made of phones."
)
COPIES = Wording(
    "test question is also in training, word for word", "test questions are also in training, word for word"
)
MADE_BY_RULE = "questions of the other domains are made by rule from plain sentences; nobody asked them"


def of_experiment(experiment: Experiment) -> Presentation:
    """An experiment as it is shown: who leads, what was trained and tested, and each system against the first."""
    shown = of_comparison(experiment.comparison)
    return replace(
        shown,
        title=TITLES[experiment.name],
        sentences=(
            words.ranking_sentence(experiment.comparison.ranking),
            *_what_was_done(experiment),
            *_against_the_first(experiment),
            *((FLATTERS,) if experiment.wer and experiment.snr_db is None else ()),
        ),
        tables=(standing_table(experiment), *shown.tables),
        figures=(shown.figures[0], *_banded(experiment), *shown.figures[1:]),
        data=experiment.frame,
        document=experiment.to_dict(),
        notes=(*shown.notes, *experiment.material.notes, *_cautions(experiment)),
    )


def _banded(experiment: Experiment) -> tuple[Callable[[], Any], ...]:
    """The first system and the one of least area with their bands, where there are too many to show all bands."""
    systems = experiment.comparison.evaluations
    if len(systems) <= MOST_BANDS:
        return ()
    first, best = systems[0], min(systems[1:], key=lambda one: one.figures["augrc"].value)
    return (drawing("error_return_chart", [first, best], region=region_of([first])),)


def standing_table(experiment: Experiment) -> Table:
    """What each system learnt from, and how its answers stand before any is withheld."""
    heard = experiment.wer > 0
    scope = experiment.material.out_of_scope > 0
    rows = tuple(
        (
            one.system,
            f"{one.pairs:,}",
            f"{one.labels:,}",
            tabled_percent(one.asked),
            *((tabled_percent(one.accuracy),) if heard else ()),
            *((words.number(one.scope),) if scope else ()),
        )
        for one in experiment.standings
    )
    columns = (
        "system",
        "questions learnt",
        "answers",
        "right, as asked",
        *(("right, as heard",) if heard else ()),
        *(("AUROC of scope",) if scope else ()),
    )
    return Table("Before any answer is withheld, of questions that have one", columns, rows)


def _what_was_done(experiment: Experiment) -> list[str]:
    material, first = experiment.material, experiment.standings[0]
    off = f", {material.out_of_scope:,} of them without an answer," if material.out_of_scope else ""
    recogniser = "a simulated recogniser" if experiment.snr_db is None else f"speech at {experiment.snr_db:g} dB"
    line = f" through {recogniser} with {words.percent(experiment.wer)} word errors" if experiment.wer else ""
    learnt = f"{first.pairs:,} questions to {first.labels:,} answers"
    tested = f"tested on {material.test.height:,} other questions{off}{line}".rstrip(",")
    if experiment.name == "tokenizers":
        return [f"Each of the {len(experiment.tokens)} models learnt from {learnt}; {tested}."]
    if experiment.name == "growth":
        grown = experiment.standings[-1]
        added = f"{grown.pairs - first.pairs:,} made ones to {grown.labels - first.labels:,} more answers"
        return [f"{first.system} learnt from {learnt}, {grown.system} from {added} as well; {tested}."]
    gate = f"the gate from these and {len(material.off_topic):,} questions without an answer"
    return [f"The interpreter learnt from {learnt}, {gate}; {tested}. All three give the same answers."]


def _against_the_first(experiment: Experiment) -> list[str]:
    pairs = [pair for pair in experiment.comparison.pairs if pair.a == experiment.standings[0].system]
    verdicts = [words.pair_sentences(pair)[0] for pair in pairs]
    if experiment.name == "growth":
        return [*verdicts, words.pair_sentences(pairs[-1])[1]]
    return [*verdicts, _scope_sentence(experiment)] if experiment.name == "gate" else verdicts


def _scope_sentence(experiment: Experiment) -> str:
    told = ", ".join(f"{one.system} {words.number(one.scope)}" for one in experiment.standings)
    return f"AUROC for telling questions with an answer from those without: {told}."


def _cautions(experiment: Experiment) -> tuple[str, ...]:
    made = (MADE_BY_RULE,) if experiment.name == "growth" else ()
    again = experiment.material.test["input"]
    seen = int(again.is_in(experiment.material.train["input"].to_list()).sum())
    copies = (COPIES.told(seen),) if seen else ()
    tokens = f"tokens: {', '.join(experiment.tokens)}" if experiment.name != "tokenizers" else ""
    return (*((tokens,) if tokens else ()), *made, *copies)
