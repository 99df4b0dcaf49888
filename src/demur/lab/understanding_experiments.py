"""The experiments of Artstein (2011): tokenizers, growth and two stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.io.columns import ALIASES, resolve
from demur.core.io.files import read_source, table_of
from demur.core.io.sources import opened
from demur.core.io.tables import Cells, Request, Table, first
from demur.core.show import numbers
from demur.core.show.notebook import drawn, presented
from demur.core.show.numbers import ROWS, Wording, tabled_percent
from demur.core.show.presentation import Presentation, drawing
from demur.core.show.presentation import Table as Table_of_presentation
from demur.core.show.results import Shown, Step, plain, register, silent
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from demur.lab.corpora import Corpus
from demur.lab.noise import said_and_heard
from demur.returns import words as returns_words
from demur.returns.compare import Comparison, compare
from demur.returns.measures import AUROC
from demur.returns.presentation import of_comparison, region_of
from demur.returns.table import responses
from demur.understanding.gate import Gate, two_stage
from demur.understanding.noise import Channel, word_errors
from demur.understanding.pairs import AS_IT_COMES, require
from demur.understanding.questions import made_pairs
from demur.understanding.relevance import RelevanceClassifier, answered
from demur.understanding.tokens import parts_of, words

HELD_OUT = 8
"""Questions of each of the museum guide's answers that are kept for testing."""

KEPT_BACK = 4
"""Of own questions that no column splits, one in so many of each label is kept for testing."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": (),
    "input": ALIASES["input"],
    "target": ALIASES["target"],
    "split": ("part", "fold"),
}
"""The columns of a table of questions, each with the other names it may go by."""

TRAIN, TEST = ("train", "training"), ("test", "testing")
"""What a split is called, in any letter case."""


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Questions to learn from and others to be tested on."""

    name: str
    train: pl.DataFrame
    """`input` and `target`."""
    test: pl.DataFrame
    """`id`, `input` and `target`, null where no answer is right."""
    off_topic: tuple[str, ...] = ()
    """Questions without an answer to learn from."""
    notes: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The questions to learn from."""
        return self.train["input"].to_list()

    @property
    def labels(self) -> list[str]:
        """Their answers."""
        return self.train["target"].to_list()

    @property
    def out_of_scope(self) -> int:
        """Test questions to which no answer is right."""
        return self.test["target"].null_count()

    def in_scope(self) -> Material:
        """The same, tested only on questions that have an answer."""
        return replace(self, test=self.test.filter(pl.col("target").is_not_null()))

    def with_off_topic(self, *, seed: int = 0) -> Material:
        """The same with off-topic questions to learn from; where there are none, half of those to be tested on."""
        if self.off_topic:
            return self
        lost = self.test.with_row_index("place").filter(pl.col("target").is_null())["place"].to_numpy()
        if len(lost) < 2:
            raise DataError(
                "the gate needs questions without an answer to learn from, and others to be tested on",
                where=f"{self.name}:",
                fix='give rows whose target is null or "oos"',
            )
        taken = np.random.default_rng(seed).permutation(lost)[: len(lost) // 2]
        to_learn = pl.int_range(pl.len()).is_in(taken.tolist())
        texts = self.test.filter(to_learn)["input"].to_list()
        return replace(self, off_topic=tuple(texts), test=self.test.filter(~to_learn))


def guide_material(corpus: Corpus, *, name: str = "museum", seed: int = 0) -> Material:
    """A corpus with eight questions of every answer held out; they and all off-topic ones are tested on."""
    shuffled = corpus.questions[np.random.default_rng(seed).permutation(corpus.questions.height)]
    place = pl.int_range(pl.len()).over("target")
    train, test = (shuffled.filter(kept).sort("id") for kept in (place >= HELD_OUT, place < HELD_OUT))
    off_topic = corpus.offtopic.with_columns(target=pl.lit(None, pl.String))
    return Material(name, train.select("input", "target"), pl.concat([test, off_topic], how="diagonal"))


def own_material(
    data: object, *, name: str = "data", columns: Mapping[str, str] | None = None, seed: int = 0
) -> Material:
    """The material in a table of questions with the label of their answer, null or "oos" where there is none.

    A column `split` says which rows are `train` and which are `test`; others are left out. Without it one in four
    questions of every label is tested on, and all without an answer.

    >>> rows = [{"text": f"open {k}", "label": "hours"} for k in range(8)] + [{"text": "hello", "label": "oos"}]
    >>> material = own_material(rows)
    >>> material.train.height, material.test.height, material.out_of_scope
    (6, 3, 1)
    """
    return _divided([table_of(data, Request())], name, columns or {}, seed)


def read_material(source: str | Path, *, columns: Mapping[str, str] | None = None, seed: int = 0) -> Material:
    """The material in the files that a path, a glob or `-` stands for, likewise."""
    with opened(source) as files:
        return _divided([read_source(file, Request()) for file in files], files[0].stem, columns or {}, seed)


def _divided(tables: Sequence[Table], name: str, columns: Mapping[str, str], seed: int) -> Material:
    read = [_rows(table, columns) for table in tables]
    rows = pl.concat([frame for frame, _ in read], how="diagonal")
    if "id" not in rows.columns:
        rows = rows.with_columns(id=pl.int_range(1, pl.len() + 1).cast(pl.String))
    train, test, told = _by_split(rows) if "split" in rows.columns else _by_chance(rows, seed)
    known = pl.col("target").is_not_null()
    for which, part in (("to learn from", train.filter(known)), ("to be tested on", test)):
        if part.is_empty():
            fix = f'a column split says "train" or "test"; without one a label needs {KEPT_BACK} questions'
            raise DataError(f"there are no questions {which}", where=f"{name}:", fix=fix)
    return Material(
        name,
        train.filter(known).select("input", "target"),
        test.select("id", "input", "target"),
        tuple(train.filter(~known)["input"]),
        tuple(dict.fromkeys(note for notes in (*(notes for _, notes in read), told) for note in notes)),
    )


def _rows(table: Table, columns: Mapping[str, str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows with the columns an experiment knows, all as text."""
    found = resolve(table.columns, dict(columns), where=f"{table.name}:", aliases=COLUMNS)
    require(("input", "target"), found.columns, table)
    cells = Cells(table, found.columns)
    missing = first(cells.text("input").is_null())
    if missing is not None:
        raise cells.fault("input", missing, "must not be missing", fix="leave the row out, or write an empty text")
    frame = pl.DataFrame([cells.text(part).alias(part) for part in found.columns])
    no_answer = pl.col("target").is_in([*AS_IT_COMES.out_of_scope, ""])
    return frame.with_columns(target=pl.when(~no_answer).then("target")), found.notes


def _by_split(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, tuple[str, ...]]:
    split = pl.col("split").str.strip_chars().str.to_lowercase()
    train, test = (rows.filter(split.is_in(names)) for names in (TRAIN, TEST))
    rest = rows.height - train.height - test.height
    return train, test, (f"{ROWS.told(rest)} left out, neither train nor test",) if rest else ()


def _by_chance(rows: pl.DataFrame, seed: int) -> tuple[pl.DataFrame, pl.DataFrame, tuple[str, ...]]:
    shuffled = rows.with_row_index("row")[np.random.default_rng(seed).permutation(rows.height)]
    place, size = (count.over("target") for count in (pl.int_range(pl.len()), pl.len()))
    tested = (place < size // KEPT_BACK) | pl.col("target").is_null()
    train, test = (shuffled.filter(kept).sort("row").drop("row") for kept in (~tested, tested))
    return train, test, (f"no column split: one question in {KEPT_BACK} of each label is kept for testing",)


Name = Literal["tokenizers", "growth", "gate"]

TOKENS = ("words", "phones1", "phones2", "phones3", "mixed")
"""The lines of figures 1 and 2."""

INTERPRETER, GATE, BOTH = "own confidence", "gate", "both"
"""What an answer's confidence is in the experiment on two stages: the interpreter's, the gate's, their product."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What one system learnt from, and how its answers stand before any is withheld."""

    system: str
    pairs: int
    """Questions it learnt from."""
    labels: int
    """Answers it may choose from."""
    accuracy: float
    """Share of the questions with an answer that get it, as they were heard; NaN where there are none."""
    asked: float
    """The same for the questions as they were asked."""
    scope: float
    """AUROC of the confidence: whether a question with an answer has more of it than one without."""


@dataclass(frozen=True, eq=False)
class Experiment(Shown):
    """What several systems answered to the same questions, and how they compare."""

    name: Name
    material: Material
    comparison: Comparison
    standings: tuple[Standing, ...]
    responses: pl.DataFrame
    """`system`, `id`, `input` as it was heard, `asked`, `target`, `prediction` and `confidence`."""
    wer: float
    """The word error rate that the questions have; 0 where they are as asked."""
    tokens: tuple[str, ...]
    """What texts were made of."""
    snr_db: float | None = None
    """Where questions were really spoken: how many decibels they were above the noise."""

    def frame(self) -> pl.DataFrame:
        """The answers of all systems."""
        return self.responses

    def to_dict(self) -> dict[str, Any]:
        """The experiment as plain values."""
        told = {
            "experiment": self.name,
            "data": self.material.name,
            "tokens": list(self.tokens),
            "word_error_rate": self.wer,
            "spoken_at_db": self.snr_db,
            "tested": self.material.test.height,
            "out_of_scope": self.material.out_of_scope,
            "off_topic_learnt": len(self.material.off_topic) if self.name == "gate" else 0,
            "standings": [
                {name: getattr(one, name) for name in ("system", "pairs", "labels", "accuracy", "asked", "scope")}
                for one in self.standings
            ],
        }
        return {**plain(told), **self.comparison.to_dict()}


def tokenizer_experiment(
    material: Material,
    *,
    tokens: Sequence[str] = TOKENS,
    wer: float = 0.3,
    snr_db: float | None = None,
    seed: int = 0,
    step: Step = silent,
    **sampling: Any,
) -> Experiment:
    """One model per tokenizer, the same training, tested through a recogniser that errs: figures 1 and 2.

    With `snr_db` the recogniser is a real one: questions are spoken by espeak-ng in noise and heard by pocketsphinx,
    where both are installed.
    """
    _refuse_fewer_than_two(tokens)
    trial = _Trial.of(material, wer, seed) if snr_db is None else _Trial.spoken(material, snr_db, seed)
    found = []
    for done, name in enumerate(tokens):
        step(f"training on {name}", done, len(tokens) + 1)
        model = RelevanceClassifier(tokens=name).fit(material.texts, material.labels)
        found.append(trial.answers(name, model))
    step("comparing", len(tokens), len(tokens) + 1)
    return trial.experiment("tokenizers", found, tuple(tokens), seed=seed, **sampling)


def growth_experiment(
    material: Material,
    domains: Mapping[str, str],
    *,
    tokens: str = "words",
    wer: float = 0.0,
    seed: int = 0,
    step: Step = silent,
    **sampling: Any,
) -> Experiment:
    """A character as it is, then grown by one domain after the other, tested on its own questions only: figure 3.

    The questions of the other domains are made by rule from their texts; every sentence is an answer of its own.
    """
    if not domains:
        raise UsageError("to grow, a character needs at least one text of another domain")
    trial = _Trial.of(material.in_scope(), wer, seed)
    texts, labels, found = list(material.texts), list(material.labels), []
    for done, (name, text) in enumerate([(material.name, ""), *domains.items()]):
        step(f"growing by {name}" if done else "training", done, len(domains) + 2)
        pairs = _pairs_of(name, text) if done else []
        texts += [question for question, _ in pairs]
        labels += [label for _, label in pairs]
        model = RelevanceClassifier(tokens=tokens).fit(texts, labels)
        found.append(trial.answers(f"+{done} {name}" if done else name, model))
    step("comparing", len(domains) + 1, len(domains) + 2)
    return trial.experiment("growth", found, (tokens,), seed=seed, **sampling)


def gate_experiment(
    material: Material,
    *,
    tokens: str = "words",
    wer: float = 0.0,
    seed: int = 0,
    step: Step = silent,
    **sampling: Any,
) -> Experiment:
    """The same predictions, withheld by the interpreter's own confidence, by a gate before it, or by both.

    The gate has learnt from off-topic questions; where the material keeps none apart for that, from half of them.
    """
    known = material.with_off_topic(seed=seed)
    trial = _Trial.of(known, wer, seed)
    step("training", 0, 2)
    model = RelevanceClassifier(tokens=tokens).fit(known.texts, known.labels)
    alone = trial.answers(INTERPRETER, model)
    gate = Gate(tokens=tokens).fit(known.texts, known.off_topic)
    gated = two_stage(gate, alone.heard, system=GATE)
    both = gated.with_columns(system=pl.lit(BOTH), confidence=gated["confidence"] * alone.heard["confidence"])
    found = [alone, *(_Answers(model, alone.asked, answers) for answers in (gated, both))]
    step("comparing", 1, 2)
    return trial.experiment("gate", found, (tokens,), seed=seed, **sampling)


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """A system's answers to the questions as asked, and as heard."""

    model: RelevanceClassifier
    asked: pl.DataFrame
    heard: pl.DataFrame

    def standing(self) -> Standing:
        return Standing(
            system=self.heard["system"][0],
            pairs=len(self.model.label_of_),
            labels=len(self.model.classes_),
            accuracy=accuracy(self.heard),
            asked=accuracy(self.asked),
            scope=scope_auroc(self.heard),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """Test questions as asked and as heard."""

    material: Material
    heard: list[str]
    wer: float
    snr_db: float | None = None

    @classmethod
    def spoken(cls, material: Material, snr_db: float, seed: int) -> _Trial:
        """Questions as a real recogniser hears them."""
        asked, ids = material.test["input"].to_list(), material.test["id"].to_list()
        heard = said_and_heard(asked, snr_db=snr_db, seed=seed, ids=ids)
        said = [words(text) for text in asked]
        errors = sum(word_errors(text, words(other)) for text, other in zip(said, heard, strict=True))
        return cls(material, heard, errors / max(sum(map(len, said)), 1), snr_db)

    @classmethod
    def of(cls, material: Material, wer: float, seed: int) -> _Trial:
        asked = material.test["input"].to_list()
        if wer == 0:
            return cls(material, asked, 0.0)
        heard = Channel(material.texts, wer=wer, seed=seed).heard(asked, material.test["id"].to_list())
        return cls(material, heard.texts, heard.wer)

    def answers(self, system: str, model: RelevanceClassifier) -> _Answers:
        test = self.material.test.with_columns(asked=pl.col("input"))
        asked = responded(system, model, test)
        if self.wer == 0 and self.snr_db is None:
            return _Answers(model, asked, asked)
        return _Answers(model, asked, responded(system, model, test.with_columns(pl.Series("input", self.heard))))

    def experiment(self, name: Name, found: Sequence[_Answers], tokens: tuple[str, ...], **sampling: Any) -> Experiment:
        table = pl.concat([answers.heard for answers in found])
        standings = tuple(answers.standing() for answers in found)
        compared = compare(responses(table), **sampling)
        return Experiment(name, self.material, compared, standings, table, self.wer, tokens, self.snr_db)


def responded(system: str, model: RelevanceClassifier, test: pl.DataFrame) -> pl.DataFrame:
    """The answers of a model as a table of responses: no prediction where it knows nothing of the question."""
    found = answered(model, test["input"].to_list(), nbest=1)
    confidence = [None if one.label is None else min(one.confidence, 1.0) for one in found]
    return test.select(
        pl.lit(system).alias("system"),
        pl.all(),
        pl.Series("prediction", [one.label for one in found], dtype=pl.String),
        pl.Series("confidence", confidence, dtype=pl.Float64),
    )


def accuracy(table: pl.DataFrame) -> float:
    """Share of the questions with an answer that get it when nothing is withheld; NaN where there are none.

    >>> accuracy(pl.DataFrame({"target": ["a", "b", None], "prediction": ["a", None, "a"]}))
    0.5
    """
    known = table.filter(pl.col("target").is_not_null())
    right = known.filter(pl.col("target") == pl.col("prediction")).height
    return right / known.height if known.height else float("nan")


def scope_auroc(table: pl.DataFrame) -> float:
    """Probability that a question with an answer has more confidence than one without, ties half; NaN without either.

    What is not answered has the least confidence.

    >>> scope_auroc(pl.DataFrame({"target": ["a", "b", None], "confidence": [0.9, None, 0.2]}))
    0.5
    """
    confidence = table["confidence"].fill_null(-1.0).to_numpy()
    sweep = Sweep.of(confidence, table["target"].is_not_null().to_numpy())
    return float(AUROC().finish(sweep))


def _pairs_of(name: str, text: str) -> list[tuple[str, str]]:
    """Questions made by rule of a text, each with the sentence it came from as the label of its answer."""
    pairs = [(pair.question, f"{name}: {pair.answer}") for pair in made_pairs(text)]
    if not pairs:
        raise UsageError(f'no question could be made by rule of the text "{name}"; give plain factual sentences')
    return pairs


def _refuse_fewer_than_two(tokens: Sequence[str]) -> None:
    for name in tokens:
        parts_of(name)
    if len(set(tokens)) < len(tokens) or len(tokens) < 2:
        raise UsageError(f"the experiment compares two or more tokenizers, each once; got {', '.join(tokens)}")


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
            returns_words.ranking_sentence(experiment.comparison.ranking),
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
    return (drawing("returns.charts.error_return.error_return_chart", [first, best], region=region_of([first])),)


def standing_table(experiment: Experiment) -> Table_of_presentation:
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
            *((numbers.number(one.scope),) if scope else ()),
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
    return Table_of_presentation("Before any answer is withheld, of questions that have one", columns, rows)


def _what_was_done(experiment: Experiment) -> list[str]:
    material, first = experiment.material, experiment.standings[0]
    off = f", {material.out_of_scope:,} of them without an answer," if material.out_of_scope else ""
    recogniser = "a simulated recogniser" if experiment.snr_db is None else f"speech at {experiment.snr_db:g} dB"
    line = f" through {recogniser} with {numbers.percent(experiment.wer)} word errors" if experiment.wer else ""
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
    verdicts = [returns_words.pair_sentences(pair)[0] for pair in pairs]
    if experiment.name == "growth":
        return [*verdicts, returns_words.pair_sentences(pairs[-1])[1]]
    return [*verdicts, _scope_sentence(experiment)] if experiment.name == "gate" else verdicts


def _scope_sentence(experiment: Experiment) -> str:
    told = ", ".join(f"{one.system} {numbers.number(one.scope)}" for one in experiment.standings)
    return f"AUROC for telling questions with an answer from those without: {told}."


def _cautions(experiment: Experiment) -> tuple[str, ...]:
    made = (MADE_BY_RULE,) if experiment.name == "growth" else ()
    again = experiment.material.test["input"]
    seen = int(again.is_in(experiment.material.train["input"].to_list()).sum())
    copies = (COPIES.told(seen),) if seen else ()
    tokens = f"tokens: {', '.join(experiment.tokens)}" if experiment.name != "tokenizers" else ""
    return (*((tokens,) if tokens else ()), *made, *copies)


register(
    Experiment,
    chart=drawn("returns.charts.error_return.comparison_chart", lambda one: one.comparison),
    page=presented(of_experiment),
)
