"""The jobs of understanding: their options are declared here, and nowhere else.

Only light modules are imported here, as every command loads this one for its help.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from demur.core.jobs import Argument, Job, Option, Output, job
from demur.core.options import ROW_ENDINGS, Level, NoSeed, Replicates, Sampling, Seed, Where
from demur.core.show.results import Step, silent
from demur.errors import UsageError
from demur.returns.options import OUT_OF_SCOPE, Columns, labels

if TYPE_CHECKING:
    from demur.understanding.grading import GradedAnswers, TrainedGrader
    from demur.understanding.questions import QuestionPairs
    from demur.understanding.relevance import RelevanceClassifier
    from demur.understanding.training import AnswerTable, TrainedModel, TunedModel

TABLES = ".jsonl .csv .tsv .parquet .arrow, also .gz and .zst; globs; - for standard input"
PairData = Annotated[
    Any, Argument(f"Table of pairs: input, target (the answer's label), perhaps answer: {TABLES}.", metavar="PAIRS")
]
AnswerTexts = Annotated[Any, Option("Table of what answers say: answer (the label) and text.", metavar="FILE")]
Tokens = Annotated[
    str,
    Option(
        "What texts are made of: words, phones, or mixed, which averages both; also phones1 to phones3, joined "
        "by + into one bag or by | to be averaged.",
        metavar="NAME",
    ),
]
AnswerWeight = Annotated[
    float, Option("How much of an answer's language model is its own text.", above=0, below=1, metavar="W")
]
ScoringName = Annotated[
    Literal["posterior", "kl", "cross-entropy"],
    Option("What the confidence is: weight of the questions, or nearness of the answer."),
]
OffTopicLabels = Annotated[
    tuple[str, ...],
    Option(
        "Target that stands for no answer, so its texts are off-topic. Repeatable; replaces oos and out_of_scope. "
        '"" for none.',
        flag="--out-of-scope",
        metavar="LABEL",
        repeat=True,
        collect=labels,
    ),
]
ModelFolder = Annotated[
    "RelevanceClassifier | str | Path", Argument("Folder of a model, as train and tune write it.", "MODEL_DIR")
]
_NUMBER: dict[str, Any] = {"metavar": "T", "takes": "a number", "check": lambda one: one is None or math.isfinite(one)}
LeastConfidence = Annotated[
    float | None, Option("Least confidence of an answer that is returned; by default the model's.", **_NUMBER)
]


@job
def train(
    data: PairData,
    *,
    answers: AnswerTexts = None,
    tokens: Tokens = "words",
    question_weight: Annotated[
        float, Option("How much of a question's language model is its own text.", above=0, below=1, metavar="W")
    ] = 0.5,
    answer_weight: AnswerWeight = 0.7,
    sharpness: Annotated[float, Option("Power that likelihoods are raised to.", above=0, metavar="S")] = 0.6,
    scoring: ScoringName = "posterior",
    threshold: Annotated[
        float | None, Option("Least confidence of an answer that is returned; tune finds one.", **_NUMBER)
    ] = None,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OffTopicLabels = OUT_OF_SCOPE,
    seed: NoSeed = 0,  # noqa: ARG001
    step: Step = silent,
) -> "TrainedModel":
    """Learn from questions and the labels of their answers, and write the model to a folder.

    Pairs are a file, a frame or rows with `input`, `target` and perhaps `answer`. `answers` tells what the answers
    say: a dict, a file, a frame or rows. Texts without a target are not learnt from. The result is a
    `RelevanceClassifier`, which `save_model` writes.

    >>> guide = train([{"text": "when do you open", "label": "hours"}, {"text": "who built it", "label": "builder"}])
    >>> guide.predict(["are you open"]).tolist()
    ['hours']
    """
    from demur.understanding.pairs import PairReading, read_pairs
    from demur.understanding.tokens import parts_of
    from demur.understanding.training import train_model

    parts_of(tokens)
    step("reading", 0, 2)
    reading = PairReading(columns=dict(columns or {}), where=tuple(where), out_of_scope=tuple(out_of_scope))
    pairs = read_pairs(data, reading=reading).with_answers(answers)
    step("training", 1, 2)
    return train_model(
        pairs,
        tokens=tokens,
        question_weight=question_weight,
        answer_weight=answer_weight,
        sharpness=sharpness,
        scoring=scoring,
        threshold=threshold,
    )


@job
def tune(
    data: PairData,
    *,
    off_topic: Annotated[Any, Option("Table of texts that have no answer: input.", metavar="FILE")] = None,
    answers: AnswerTexts = None,
    tokens: Tokens = "words",
    answer_weight: AnswerWeight = 0.7,
    scoring: ScoringName = "posterior",
    cost_ratio: Annotated[
        float | None,
        Option(
            "Threshold by what a non-return costs over what an error costs: 0 <= R <= 1; without any aim 0.5.",
            metavar="R",
        ),
    ] = None,
    max_error: Annotated[
        float | None, Option("Threshold by most errors, as a share of all inputs.", metavar="E")
    ] = None,
    max_nonreturn: Annotated[float | None, Option("Threshold by most non-returns.", metavar="X")] = None,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OffTopicLabels = OUT_OF_SCOPE,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "TunedModel":
    """Find weights, sharpness and threshold by answering every question without it, and write the best model.

    `off_topic` are texts that have no answer (a file, a frame, rows, or texts), besides those pairs without a target.
    The threshold is for one of the aims of `threshold`; without any, a non-return costs half as much as an error.
    No error rate can be promised: settings and threshold are chosen on the same questions. `model` of the result is
    the `RelevanceClassifier`.
    """
    from demur.returns.threshold import aim
    from demur.understanding.pairs import PairReading, read_inputs, read_pairs
    from demur.understanding.tokens import parts_of
    from demur.understanding.training import tune_model

    parts_of(tokens)
    choose = None
    if (cost_ratio, max_error, max_nonreturn) != (None, None, None):
        choose = aim(cost_ratio=cost_ratio, max_error=max_error, max_nonreturn=max_nonreturn)
    step("reading", 0, 1)
    reading = PairReading(columns=dict(columns or {}), where=tuple(where), out_of_scope=tuple(out_of_scope))
    return tune_model(
        read_pairs(data, reading=reading).with_answers(answers),
        off_topic=() if off_topic is None else read_inputs(off_topic).texts,
        choose=choose,
        sampling=Sampling(level, replicates, seed),
        step=step,
        tokens=tokens,
        answer_weight=answer_weight,
        scoring=scoring,
    )


@job
def respond(
    model: ModelFolder,
    data: Annotated[
        Any, Argument(f"Table of texts: input, perhaps id and target; other columns are kept: {TABLES}.", "INPUTS")
    ],
    *,
    nbest: Annotated[int, Option("Labels in the list of the best.", minimum=1, metavar="N")] = 5,
    threshold: LeastConfidence = None,
    withhold: Annotated[
        bool,
        Option("No prediction below the threshold; by default it stays, so that score can try all thresholds."),
    ] = False,
    forced: Annotated[
        bool,
        Option("An answer to every text: of unknown words the most frequent answer, with the confidence of the prior."),
    ] = False,
    columns: Columns = None,
    where: Where = (),
    seed: NoSeed = 0,  # noqa: ARG001
    step: Step = silent,
) -> "AnswerTable":
    """Answer the texts of a table, with confidences, as a table that `demur score` reads.

    Texts are a file, a frame, rows or a list of texts; further columns are kept. `frame()` of the result has
    `prediction`, `confidence`, `nbest` and `why`. Where there is a threshold, the model's or the one given, `returned`
    says which answers it returns; with `withhold` the others have no prediction. A text of which nothing is known has
    none in any case, and `why` says so; with `forced` it has the most frequent answer, so that curves start at 0
    non-returns.

    >>> guide = train([{"text": "when do you open", "label": "hours"}, {"text": "who built it", "label": "builder"}])
    >>> respond(guide, ["are you open", "xyzzy"]).frame().select("prediction", "why").rows()
    [('hours', None), (None, 'none of its words was ever seen in training')]
    """
    from demur.understanding.pairs import PairReading, read_inputs
    from demur.understanding.relevance import model_in
    from demur.understanding.training import answer_inputs

    step("reading", 0, 1)
    fitted = model_in(model, threshold)
    if withhold and fitted.threshold is None:
        raise UsageError("`withhold`: the model has no threshold; give one with `threshold`, or find one with tune")
    if withhold and forced:
        raise UsageError("`forced` answers every text, `withhold` does not; give one of them")
    inputs = read_inputs(data, reading=PairReading(columns=dict(columns or {}), where=tuple(where)))
    return answer_inputs(fitted, inputs, nbest=nbest, withhold=withhold, forced=forced, step=step)


@job
def question_pairs(
    *texts: Annotated[
        Any, Argument("Plain text, UTF-8: files, or - for standard input; in Python also a dict of names to texts.")
    ],
    seed: NoSeed = 0,  # noqa: ARG001
    step: Step = silent,
) -> "QuestionPairs":
    """Make question-answer pairs of plain text by rule, as a table that `demur understand train` reads.

    Each sentence is an answer, and the rules make none to four questions of it. `frame()` of the result has `input`
    (the question), `target` (the text and the number of the sentence), `answer` and `rule`; `to_dict()` counts the
    sentences that no rule reaches and the questions of each rule.

    >>> made = question_pairs({"rye": "Rye is a grass. It is grey."})
    >>> made.frame().select("input", "target", "rule").rows()
    [('What is rye?', 'rye 1', 'what')]
    """
    from demur.understanding.questions import read_texts, table_of_pairs

    step("reading", 0, 1)
    return table_of_pairs(read_texts(texts))


Marked = Annotated[
    Any,
    Argument(
        f"Table of student answers: question, expected (a text or a list of them), answer, target: {TABLES}.", "ANSWERS"
    ),
]


@job
def train_grader(
    data: Marked,
    *,
    folds: Annotated[int, Option("Folds of the evaluation.", minimum=2)] = 10,
    by: Annotated[
        Literal["dialogue", "group", "question"] | None, Option("Never part answers with the same value here.")
    ] = None,
    columns: Columns = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "TrainedGrader":
    """Learn to grade short answers from eight similarities, and evaluate by folds: Table 6 of Dzikovska et al. (2012).

    The similarities are raw overlap, F1, Lesk and cosine of the answer with the expected answer and with the question
    (Text::Similarity); a pruned decision tree close to C4.5 learns from them. `frame()` of the result has each answer
    as graded by the other folds.
    """
    from demur.understanding.grading import trained_grader

    step("grading by folds", 0, 1)
    sampling = Sampling(level, replicates, seed)
    return trained_grader(data, folds=folds, by=by, columns=dict(columns or {}), sampling=sampling)


@job
def grade(
    model: Annotated[Any, Argument("A grader, as train writes it with --model.", "MODEL")],
    data: Annotated[Any, Argument(f"Table of student answers: question, expected, answer: {TABLES}.", "ANSWERS")],
    *,
    columns: Columns = None,
    seed: NoSeed = 0,  # noqa: ARG001
    step: Step = silent,
) -> "GradedAnswers":
    """Grade the answers of a table by a grader, as a table that `demur classes` and `demur score` read."""
    from demur.understanding.grading import grade_answers

    step("grading", 0, 1)
    return grade_answers(model, data, dict(columns or {}))


_FOLDER: dict[str, Any] = {
    "about": "`-o` with a name without an ending, MODEL_DIR, writes the model to that folder.",
    "endings": (("", "demur.understanding.relevance:write_result"),),
    "check": "demur.understanding.relevance:check_folders",
    "says_files": True,
}

JOBS = (
    Job(
        "understand train",
        train,
        present="demur.understanding.presentation:of_training",
        example="demur understand train pairs.jsonl --tokens words -o guide",
        figures=False,
        **_FOLDER,
    ),
    Job(
        "understand tune",
        tune,
        present="demur.understanding.presentation:of_tuning",
        example="demur understand tune pairs.jsonl --max-error 0.1 -o guide",
        **_FOLDER,
    ),
    Job(
        "understand respond",
        respond,
        present="demur.understanding.presentation:of_answers",
        example="demur understand respond guide inputs.jsonl -o responses.jsonl",
        about="`-o` writes the table of responses to .jsonl .jsonl.gz .jsonl.zst .json .csv .tsv .parquet .arrow.",
        endings=tuple((ending, "demur.understanding.training:write_answers") for ending in ROW_ENDINGS),
        figures=False,
        says_files=True,
    ),
    Job(
        "understand pairs",
        question_pairs,
        present="demur.understanding.presentation:of_pairs",
        example="demur understand pairs bees.txt -o pairs.jsonl",
        about="`-o` writes the pairs to .jsonl .jsonl.gz .jsonl.zst .json .csv .tsv .parquet .arrow.",
        endings=tuple((ending, "demur.understanding.questions:write_pairs") for ending in ROW_ENDINGS),
        figures=False,
        says_files=True,
    ),
    Job(
        "understand grade train",
        train_grader,
        present="demur.understanding.presentation:of_grader",
        example="demur understand grade train answers.jsonl --model grader.json",
        outputs=(
            Output(
                "--model",
                "Write the grader to this file.",
                "demur.understanding.grading:write_grader",
                metavar="FILE.json",
                short="-m",
                ending=".json",
            ),
        ),
    ),
    Job(
        "understand grade respond",
        grade,
        present="demur.understanding.presentation:of_grades",
        example="demur understand grade respond grader.json answers.jsonl -o graded.jsonl",
        about=f"`-o` writes the grades to {' '.join(ROW_ENDINGS)}.",
        endings=tuple((ending, "demur.understanding.grading:write_grades") for ending in ROW_ENDINGS),
        figures=False,
        says_files=True,
    ),
)
