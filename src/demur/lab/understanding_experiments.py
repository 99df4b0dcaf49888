"""The experiments of Artstein (2011): tokenizers, growth and two stages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.io.columns import ALIASES, resolve
from demur.core.io.files import read_source, table_of
from demur.core.io.tables import Cells, Request, Table, first
from demur.core.io.writing import write_whole
from demur.core.options import Sampling
from demur.core.show import numbers
from demur.core.show.html import drawn
from demur.core.show.numbers import ROWS, Wording, tabled_percent
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.core.show.results import Shown, Step, plain, register, silent
from demur.core.stats.resampling import Rows, Sample
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from demur.importers.reading import opened
from demur.lab.corpora import Corpus, museum
from demur.returns import presentation, words
from demur.returns.comparison import verdicts
from demur.returns.comparison.compare import Comparison, compare
from demur.returns.measures import AUROC
from demur.returns.presentation import of_comparison, region_of
from demur.returns.table import responses
from demur.returns.threshold import Choice, threshold_by_error
from demur.understanding.noise import FLATTERS, NoiseChannel, Recognition, WordChannel
from demur.understanding.pairs import AS_IT_COMES, require
from demur.understanding.questions import MADE_BY_RULE, make_pairs
from demur.understanding.relevance import RelevanceClassifier, answered
from demur.understanding.tokens import parts_of
from demur.understanding.training import DomainGate, two_stage

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

DEMO_TOKENS = ("words", "phones", "mixed")
"""What texts are made of, a model each."""

CONDITIONS = ("clean", "noisy")
WER = 0.3
"""Word error rate of noisy questions."""

PROMISE, DELTA = 0.1, 0.05

DEMO_TITLES = {"noisy": "Questions through a noisy recogniser", "clean": "Questions as typed"}
"""What the conditions are called, the one that leads first."""


@dataclass(frozen=True, slots=True, eq=False)
class QuestionSet:
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

    def in_scope(self) -> QuestionSet:
        """The same, tested only on questions that have an answer."""
        return replace(self, test=self.test.filter(pl.col("target").is_not_null()))

    def only(self, ids: Collection[Any]) -> QuestionSet:
        """The same, tested only on questions of these ids; a note says how many are left out."""
        kept = self.test.filter(pl.col("id").is_in([str(one) for one in ids]))
        if kept.is_empty():
            raise DataError("nothing is recorded for any test question", where=f"{self.name}:", fix="do the ids agree?")
        left = self.test.height - kept.height
        note = f"{left:,} test questions are left out, as nothing is recorded for them"
        return replace(self, test=kept, notes=(*self.notes, *((note,) if left else ())))

    def with_off_topic(self, *, seed: int = 0) -> QuestionSet:
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


def split_corpus(corpus: Corpus, *, name: str = "museum", seed: int = 0) -> QuestionSet:
    """A corpus with eight questions of every answer held out; they and all off-topic ones are tested on."""
    shuffled = corpus.questions[np.random.default_rng(seed).permutation(corpus.questions.height)]
    place = pl.int_range(pl.len()).over("target")
    train, test = (shuffled.filter(kept).sort("id") for kept in (place >= HELD_OUT, place < HELD_OUT))
    off_topic = corpus.offtopic.with_columns(target=pl.lit(None, pl.String))
    return QuestionSet(name, train.select("input", "target"), pl.concat([test, off_topic], how="diagonal"))


def read_questions(data: Any, *, columns: Mapping[str, str] | None = None, seed: int = 0) -> QuestionSet:
    """The questions in a file, a glob, `-`, a frame or rows, with the label of their answer, null or "oos" for none.

    A column `split` says which rows are `train` and which are `test`; others are left out. Without it one in four
    questions of every label is tested on, and all without an answer.

    >>> rows = [{"text": f"open {k}", "label": "hours"} for k in range(8)] + [{"text": "hello", "label": "oos"}]
    >>> questions = read_questions(rows)
    >>> questions.train.height, questions.test.height, questions.out_of_scope
    (6, 3, 1)
    """
    if isinstance(data, str | Path):
        with opened(data) as files:
            return _divided([read_source(file, Request()) for file in files], files[0].stem, columns or {}, seed)
    return _divided([table_of(data, Request())], "data", columns or {}, seed)


def _divided(tables: Sequence[Table], name: str, columns: Mapping[str, str], seed: int) -> QuestionSet:
    """The questions of tables, by their column `split` or by chance."""
    read = [_rows(table, columns) for table in tables]
    rows = pl.concat([frame for frame, _ in read], how="diagonal")
    if "id" not in rows.columns:
        rows = rows.with_columns(id=pl.int_range(1, pl.len() + 1).cast(pl.String))
    notes = [note for _, notes in read for note in notes]
    if "split" in rows.columns:
        split = pl.col("split").str.strip_chars().str.to_lowercase()
        train, test = (rows.filter(split.is_in(names)) for names in (TRAIN, TEST))
        rest = rows.height - train.height - test.height
        notes += [f"{ROWS.with_count(rest)} left out, neither train nor test"] if rest else []
    else:
        shuffled = rows.with_row_index("row")[np.random.default_rng(seed).permutation(rows.height)]
        place, size = (count.over("target") for count in (pl.int_range(pl.len()), pl.len()))
        tested = (place < size // KEPT_BACK) | pl.col("target").is_null()
        train, test = (shuffled.filter(kept).sort("row").drop("row") for kept in (~tested, tested))
        notes.append(f"no column split: one question in {KEPT_BACK} of each label is kept for testing")
    known = pl.col("target").is_not_null()
    for which, part in (("to learn from", train.filter(known)), ("to be tested on", test)):
        if part.is_empty():
            fix = f'a column split says "train" or "test"; without one a label needs {KEPT_BACK} questions'
            raise DataError(f"there are no questions {which}", where=f"{name}:", fix=fix)
    return QuestionSet(
        name,
        train.filter(known).select("input", "target"),
        test.select("id", "input", "target"),
        tuple(train.filter(~known)["input"]),
        tuple(dict.fromkeys(notes)),
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


ExperimentName = Literal["tokenizers", "growth", "gate"]

TOKENS = ("words", "phones1", "phones2", "phones3", "mixed")
"""The lines of figures 1 and 2."""

INTERPRETER, GATE, BOTH = "own confidence", "gate", "both"
"""What an answer's confidence is in the experiment on two stages: the interpreter's, the gate's, their product."""

USUAL = Sampling()


@dataclass(frozen=True, slots=True)
class SystemSummary:
    """What one system learnt from, and how good its answers are before any is withheld."""

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
    gain: float | None = None
    """Share right of the questions of domains that a character grows by; None where it does not grow."""


@dataclass(frozen=True, eq=False, repr=False)
class UnderstandingExperiment(Shown):
    """What several systems answered to the same questions, and how they compare."""

    name: ExperimentName
    questions: QuestionSet
    comparison: Comparison
    summaries: tuple[SystemSummary, ...]
    responses: pl.DataFrame
    """`system`, `id`, `input` as it was recognised, `asked`, `target`, `prediction` and `confidence`."""
    wer: float
    """The word error rate that the questions have; 0 where they are as asked."""
    tokens: tuple[str, ...]
    """What texts were made of."""
    channel: NoiseChannel | None
    sampling: Sampling
    new: Comparison | None = None
    """The same systems on questions of the domains that a character grows by."""

    def frame(self) -> pl.DataFrame:
        """The answers of all systems."""
        return self.responses

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the questions, and how uncertainty is computed."""
        tokens = f"tokens: {', '.join(self.tokens)}"
        seen = int(self.questions.test["input"].is_in(self.questions.train["input"].to_list()).sum())
        return (
            *self.comparison.notes,
            *self.questions.notes,
            *((tokens,) if self.name != "tokenizers" else ()),
            *((MADE_BY_RULE, HELD_BACK) if self.name == "growth" else ()),
            *((COPIES.with_count(seen),) if seen else ()),
            self.sampling.note,
        )

    def to_dict(self) -> dict[str, Any]:
        """The experiment as plain values."""
        summary = {
            "experiment": self.name,
            "data": self.questions.name,
            "tokens": list(self.tokens),
            "word_error_rate": self.wer,
            "spoken_at_db": None if self.channel is None else self.channel.snr_db,
            "tested": self.questions.test.height,
            "out_of_scope": self.questions.out_of_scope,
            "off_topic_learnt": len(self.questions.off_topic) if self.name == "gate" else 0,
            "standings": [asdict(one) for one in self.summaries],
        }
        new = {} if self.new is None else {"new_domains": self.new.to_dict()}
        return {**plain(summary), **self.comparison.to_dict(), **new, "notes": list(self.notes)}


HELD_BACK = "of a sentence that answers two or more questions the first is kept for testing what is gained"
COPIES = Wording(
    "test question is also in training, word for word", "test questions are also in training, word for word"
)


def tokenizer_experiment(
    questions: QuestionSet,
    *,
    tokens: Sequence[str] = TOKENS,
    channel: NoiseChannel | None = None,
    sampling: Sampling = USUAL,
    step: Step = silent,
) -> UnderstandingExperiment:
    """One model per tokenizer, the same training, tested through a recogniser that errs: figures 1 and 2."""
    for name in tokens:
        parts_of(name)
    if len(set(tokens)) < len(tokens) or len(tokens) < 2:
        raise UsageError(f"the experiment compares two or more tokenizers, each once; got {', '.join(tokens)}")
    test = _Test.of(questions, channel)
    answers = []
    for done, name in enumerate(tokens):
        step(f"training on {name}", done, len(tokens) + 1)
        model = RelevanceClassifier(tokens=name).fit(questions.texts, questions.labels)
        answers.append(test.answers(name, model, forced=True))
    step("comparing", len(tokens), len(tokens) + 1)
    return test.experiment("tokenizers", answers, tuple(tokens), sampling)


def growth_experiment(
    questions: QuestionSet,
    domains: Mapping[str, str],
    *,
    tokens: str = "words",
    channel: NoiseChannel | None = None,
    sampling: Sampling = USUAL,
    step: Step = silent,
) -> UnderstandingExperiment:
    """A character as it is, then grown by one domain after the other: figure 3.

    It is tested on its own questions, which shows what growing costs, and on questions of the other domains, which
    shows what it gains. The latter are made by rule from their texts; every sentence is an answer of its own, and of a
    sentence that answers several questions one is kept for testing.
    """
    if not domains:
        raise UsageError("to grow, a character needs at least one text of another domain")
    made = {name: divided_pairs(name, text) for name, text in domains.items()}
    test = _Test.of(questions, channel)
    asked = [pair for _, kept in made.values() for pair in kept]
    strange = pl.DataFrame(asked, ("input", "target"), orient="row").with_row_index("id", offset=1)
    texts, labels, answers, gained = list(questions.texts), list(questions.labels), [], []
    for done, (name, (learnt, _)) in enumerate({questions.name: ([], []), **made}.items()):
        step(f"growing by {name}" if done else "training", done, len(domains) + 2)
        texts += [question for question, _ in learnt]
        labels += [label for _, label in learnt]
        model = RelevanceClassifier(tokens=tokens).fit(texts, labels)
        system = f"+{done} {name}" if done else name
        answers.append(test.answers(system, model, forced=True))
        strangers = response_table(system, model, strange, forced=True)
        gained.append(strangers.with_columns(correct=pl.col("prediction") == pl.col("target")))
    step("comparing", len(domains) + 1, len(domains) + 2)
    found = test.experiment("growth", answers, (tokens,), sampling)
    if not asked:
        return found
    right = [replace(one, gain=accuracy(table)) for one, table in zip(found.summaries, gained, strict=True)]
    new = compare(responses(pl.concat(gained)), **asdict(sampling))
    return replace(found, summaries=tuple(right), new=new)


QuestionAnswer = tuple[str, str]


def divided_pairs(name: str, text: str) -> tuple[list[QuestionAnswer], list[QuestionAnswer]]:
    """Questions made of a text with their answers: to learn from, and to test with.

    >>> divided_pairs("rye", "Rye is a grass. Mills ground rye in 1784.")
    ([('What is rye?', 'rye: Rye is a grass.'), ('What did mills grind in 1784?', 'rye: Mills ground rye in 1784.'), \
('What ground rye in 1784?', 'rye: Mills ground rye in 1784.')], [('When did mills grind rye?', 'rye: Mills ground \
rye in 1784.')])
    """
    pairs = [(pair.question, f"{name}: {pair.answer}") for pair in make_pairs(text)]
    if not pairs:
        raise UsageError(f'no question could be made by rule of the text "{name}"; give plain factual sentences')
    answers = [answer for _, answer in pairs]
    first_of_several = [answers.count(answer) > 1 and answers.index(answer) == k for k, answer in enumerate(answers)]
    learnt, kept = (
        [pair for pair, tested in zip(pairs, first_of_several, strict=True) if tested == wanted]
        for wanted in (False, True)
    )
    return learnt, kept


def gate_experiment(
    questions: QuestionSet,
    *,
    tokens: str = "words",
    channel: NoiseChannel | None = None,
    sampling: Sampling = USUAL,
    step: Step = silent,
) -> UnderstandingExperiment:
    """The same predictions, withheld by the interpreter's own confidence, by a gate before it, or by both.

    The gate has learnt from off-topic questions; where none are kept apart for that, from half of them.
    """
    known = questions.with_off_topic(seed=sampling.seed)
    test = _Test.of(known, channel)
    step("training", 0, 2)
    model = RelevanceClassifier(tokens=tokens).fit(known.texts, known.labels)
    _, asked, alone = test.answers(INTERPRETER, model)
    gate = DomainGate(tokens=tokens).fit(known.texts, known.off_topic)
    gated = two_stage(gate, alone, system=GATE)
    both = gated.with_columns(system=pl.lit(BOTH), confidence=gated["confidence"] * alone["confidence"])
    step("comparing", 1, 2)
    answers = [(model, asked, recognised) for recognised in (alone, gated, both)]
    return test.experiment("gate", answers, (tokens,), sampling)


SystemAnswers = tuple[RelevanceClassifier, pl.DataFrame, pl.DataFrame]
"""A model, and a system's answers to the questions as asked and as recognised."""


@dataclass(frozen=True, slots=True, eq=False)
class _Test:
    """Test questions as asked and, where there is a channel, as recognised."""

    questions: QuestionSet
    channel: NoiseChannel | None
    recognition: Recognition | None

    @classmethod
    def of(cls, questions: QuestionSet, channel: NoiseChannel | None) -> _Test:
        asked, ids = (questions.test[name].to_list() for name in ("input", "id"))
        return cls(questions, channel, None if channel is None else channel.recognise(asked, ids))

    def answers(self, system: str, model: RelevanceClassifier, *, forced: bool = False) -> SystemAnswers:
        test = self.questions.test.with_columns(asked=pl.col("input"))
        asked = response_table(system, model, test, forced=forced)
        if self.recognition is None:
            return model, asked, asked
        noisy = test.with_columns(pl.Series("input", self.recognition.texts))
        return model, asked, response_table(system, model, noisy, forced=forced)

    def experiment(
        self, name: ExperimentName, answers: Sequence[SystemAnswers], tokens: tuple[str, ...], sampling: Sampling
    ) -> UnderstandingExperiment:
        table = pl.concat([recognised for _, _, recognised in answers])
        summaries = tuple(
            SystemSummary(
                system=recognised["system"][0],
                pairs=len(model.label_of_),
                labels=len(model.classes_),
                accuracy=accuracy(recognised),
                asked=accuracy(asked),
                scope=scope_auroc(recognised),
            )
            for model, asked, recognised in answers
        )
        wer = 0.0 if self.recognition is None else self.recognition.wer
        comparison = compare(responses(table), **asdict(sampling))
        return UnderstandingExperiment(
            name, self.questions, comparison, summaries, table, wer, tokens, self.channel, sampling
        )


def response_table(
    system: str, model: RelevanceClassifier, test: pl.DataFrame, *, forced: bool = False
) -> pl.DataFrame:
    """The answers of a model as a table of responses; unless forced, none where it knows nothing of the question."""
    found = answered(model, test["input"].to_list(), nbest=1, forced=forced)
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


TITLES = {
    "tokenizers": "Tokenizers for questions that were misheard",
    "growth": "A character that grows by other domains",
    "gate": "Two stages of understanding against one",
}

MOST_BANDS = 4
"""Systems up to which one plot shows the bands of all; beyond it another shows the first and the one of least area."""


def of_experiment(experiment: UnderstandingExperiment) -> Presentation:
    """An experiment as it is shown: who leads, what was trained and tested, and each system against the first."""
    shown = of_comparison(experiment.comparison)
    caution = experiment.channel.caution if experiment.channel else ""
    systems = experiment.comparison.evaluations
    figures = [shown.main_figure]
    if len(systems) > MOST_BANDS:
        first, best = systems[0], min(systems[1:], key=lambda one: one.figures["augrc"].value)
        chart = "returns.charts.error_return.error_return_chart"
        figures.append(drawing(chart, [first, best], region=region_of([first])))
    if experiment.new is not None:
        title = "Questions of the new domains: what growing gains"
        chart = "returns.charts.error_return.error_return_chart"
        figures.append(drawing(chart, experiment.new.evaluations, title=title, region=region_of(systems)))
    return replace(
        shown,
        title=TITLES[experiment.name],
        sentences=(
            verdicts.ranking_sentence(experiment.comparison.ranking),
            _training_sentence(experiment),
            *_against_the_first(experiment),
            *((caution,) if caution else ()),
        ),
        tables=(_summary_table(experiment), *shown.tables),
        figures=(*figures, *shown.figures_named("difference")),
        data=experiment.frame,
        document=experiment.to_dict(),
        notes=experiment.notes,
    )


def _summary_table(experiment: UnderstandingExperiment) -> ResultTable:
    """What each system learnt from, and how good its answers are before any is withheld."""
    systems = experiment.summaries
    columns = {
        "system": [one.system for one in systems],
        "questions learnt": [f"{one.pairs:,}" for one in systems],
        "answers": [f"{one.labels:,}" for one in systems],
        "right, as asked": [tabled_percent(one.asked) for one in systems],
    }
    if experiment.wer > 0:
        columns["right, as heard"] = [tabled_percent(one.accuracy) for one in systems]
    if experiment.new is not None:
        columns["right, new domains"] = [tabled_percent(one.gain or 0.0) for one in systems]
    if experiment.questions.out_of_scope > 0:
        columns["AUROC of scope"] = [numbers.number(one.scope) for one in systems]
    rows = tuple(zip(*columns.values(), strict=True))
    return ResultTable("Before any answer is withheld, of questions that have one", tuple(columns), rows)


def _training_sentence(experiment: UnderstandingExperiment) -> str:
    questions, first, channel = experiment.questions, experiment.summaries[0], experiment.channel
    off = f", {questions.out_of_scope:,} of them without an answer," if questions.out_of_scope else ""
    line = f" through {channel.description} with {numbers.percent(experiment.wer)} word errors" if channel else ""
    learnt = f"{first.pairs:,} questions to {first.labels:,} answers"
    tested = f"tested on {questions.test.height:,} other questions{off}{line}".rstrip(",")
    if experiment.name == "tokenizers":
        return f"Each of the {len(experiment.tokens)} models learnt from {learnt}; {tested}."
    if experiment.name == "growth":
        grown = experiment.summaries[-1]
        added = f"{grown.pairs - first.pairs:,} made ones to {grown.labels - first.labels:,} more answers"
        return f"{first.system} learnt from {learnt}, {grown.system} from {added} as well; {tested}.{_gain(experiment)}"
    gate = f"the gate from these and {len(questions.off_topic):,} questions without an answer"
    return f"The interpreter learnt from {learnt}, {gate}; {tested}. All three give the same answers."


def _gain(experiment: UnderstandingExperiment) -> str:
    """What growing gains on questions of the new domains, and what it costs on the old."""
    first, grown, new = experiment.summaries[0], experiment.summaries[-1], experiment.new
    if new is None:
        return ""
    old = f"{numbers.percent(first.accuracy)} to {numbers.percent(grown.accuracy)}"
    rises = f"{numbers.percent(first.gain or 0.0)} to {numbers.percent(grown.gain or 0.0)}"
    return f" Right answers on the old domain go from {old}, on {new.evaluations[0].n:,} of the new ones from {rises}."


def _against_the_first(experiment: UnderstandingExperiment) -> list[str]:
    pairs = [pair for pair in experiment.comparison.pairs if pair.a == experiment.summaries[0].system]
    sentences = [verdicts.pair_sentences(pair)[0] for pair in pairs]
    if experiment.name == "growth":
        sentences += verdicts.pair_sentences(pairs[-1])[1:2]
    if experiment.name == "gate":
        scopes = ", ".join(f"{one.system} {numbers.number(one.scope)}" for one in experiment.summaries)
        sentences.append(f"AUROC for telling questions with an answer from those without: {scopes}.")
    return sentences


register(
    UnderstandingExperiment,
    chart=drawn("returns.charts.comparison.comparison_chart", lambda one: one.comparison),
    present=of_experiment,
)


@dataclass(frozen=True, eq=False)
class Demonstration:
    """Three models compared on clean and on noisy questions, and a threshold for the best on noisy ones."""

    comparisons: Mapping[str, Comparison]
    choice: Choice
    table: pl.DataFrame
    """The answers of all models in both conditions."""
    sampling: Sampling
    logs: Path | None
    """The folder that the answers were written to."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done."""
        logs, answers = self.logs, f"{self.table.height:,} answers"
        return (
            f"{answers} of three models trained just now; off-topic questions count as out of scope",
            f"a recogniser that gets {numbers.percent(WER)} of the words wrong. {FLATTERS}",
            self.sampling.note,
            *(() if logs is None else (f"logs in {logs}; try: demur score {logs / 'mixed-noisy.jsonl'}",)),
        )

    def to_dict(self) -> dict[str, Any]:
        """The demonstration as plain values."""
        compared = {name: one.to_dict() for name, one in self.comparisons.items()}
        return {**compared, "threshold": self.choice.to_dict(), "notes": list(self.notes), "warnings": []}


def demonstrate(sampling: Sampling, logs: Path | None, step: Step = silent) -> Demonstration:
    """Train, answer, compare and choose; write the answers where a folder is named."""
    step("training three models", 0, 4)
    table = answer_museum(museum(), seed=sampling.seed)
    if logs is not None:
        write_logs(table, logs)
    comparisons = {}
    for done, condition in enumerate(CONDITIONS):
        step(f"comparing on {condition} questions", done + 1, 4)
        comparisons[condition] = compare(responses(table.filter(condition=condition)), **asdict(sampling))
    step("choosing a threshold", 3, 4)
    best = min(comparisons["noisy"].evaluations, key=lambda one: one.figures["augrc"].value).system
    sample = Sample(Rows.from_frame(responses(table.filter(system=best, condition="noisy")).frame))
    choice = threshold_by_error(sample, PROMISE, delta=DELTA, name=best)
    return Demonstration(comparisons, choice, table, sampling, logs)


def answer_museum(corpus: Corpus, *, seed: int = 0) -> pl.DataFrame:
    """Responses of all models to held-out and off-topic questions, as asked and as a noisy recogniser wrote them."""
    questions = split_corpus(corpus, seed=seed)
    inputs, ids = (questions.test[name].to_list() for name in ("input", "id"))
    recognition = WordChannel(questions.texts, wer=WER, seed=seed).recognise(inputs, ids)
    clean = questions.test.with_columns(condition=pl.lit("clean"))
    noisy = clean.with_columns(pl.Series("input", recognition.texts), condition=pl.lit("noisy"))
    models = {name: RelevanceClassifier(tokens=name).fit(questions.texts, questions.labels) for name in DEMO_TOKENS}
    return pl.concat([response_table(name, model, pl.concat([clean, noisy])) for name, model in models.items()])


def write_logs(table: pl.DataFrame, folder: Path) -> None:
    """One JSONL file per model and condition, as a user would have them."""
    for (system, condition), part in table.group_by("system", "condition", maintain_order=True):
        rows = part.drop("system").write_ndjson()
        write_whole(folder / f"{system}-{condition}.jsonl", rows)


def of_demonstration(found: Demonstration) -> Presentation:
    """The whole of it, as it is shown: noisy questions lead, and the details of both conditions follow."""
    choice, noisy = found.choice, found.comparisons["noisy"]
    evaluation = next(one for one in noisy.evaluations if one.system == choice.system)
    shown = {name: presentation.of_comparison(one) for name, one in found.comparisons.items()}
    without_board = {name: replace(one, title=DEMO_TITLES[name], tables=one.tables[1:]) for name, one in shown.items()}
    chosen = replace(presentation.of_choice(choice, evaluation), title="The threshold for noisy questions")
    plot = drawing(f"{presentation.COMPARED}.comparison_chart", noisy, region=None, choices=(choice,))
    return Presentation(
        title="A museum guide that may say it does not understand",
        sentences=(
            f"Through a noisy recogniser {verdicts.baseline_verdict(noisy)}.",
            words.recommendation(choice),
            *verdicts.area_range(noisy),
        ),
        tables=tuple(shown[name].main_table.titled(title) for name, title in DEMO_TITLES.items()),
        figures=(plot,),
        data=lambda: found.table,
        document=found.to_dict(),
        notes=found.notes,
        signatures=(*shown["clean"].signatures, *shown["noisy"].signatures),
        appendix=(
            replace(without_board["noisy"], figures=shown["noisy"].figures_but("comparison")),
            without_board["clean"],
            chosen,
        ),
    )
