"""Formats of others: one module each, one line in the registry, which every reader follows, and the jobs of import.

>>> importer_of("there/is/no/such/folder") is None
True
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from demur.core.jobs import Argument, Job, Option, job, load
from demur.core.options import NoSeed, name_columns
from demur.core.show.results import Step, silent
from demur.errors import UsageError
from demur.importers.choices import reads_logs

if TYPE_CHECKING:
    from demur.importers.dstc import DstcTable
    from demur.importers.protocol import Importer
    from demur.importers.reading import ImportedRows


class LogFormat(NamedTuple):
    """An importer of logs: where it is, as "module:class", what it reads, and an example of its command."""

    place: str
    files: str
    example: str


REGISTRY = {
    "inspect": LogFormat(
        "demur.importers.inspect_ai:InspectLog",
        "inspect_ai: .eval and .json logs, and tables that samples_df writes.",
        "demur import inspect logs/run.eval --confidence agreement -o log.jsonl",
    ),
    "rasa": LogFormat(
        "demur.importers.rasa:RasaResults",
        "Rasa: intent_errors.json with intent_successes.json, the same of response selection, or a .jsonl of "
        "/model/parse bodies with nlu.yml; config.yml gives the deployed threshold.",
        "demur import rasa results/intent_errors.json results/intent_successes.json -o log.jsonl",
    ),
    "lm-eval": LogFormat(
        "demur.importers.lm_eval:HarnessLog",
        "lm-evaluation-harness: samples_*.jsonl, with results_*.json for the name of the model.",
        "demur import lm-eval samples_mmlu.jsonl --metric acc_norm -o log.jsonl",
    ),
    "promptfoo": LogFormat(
        "demur.importers.promptfoo:PromptfooResults",
        "promptfoo: results as .json, .jsonl or .csv.",
        "demur import promptfoo results.json --confidence namedScores.confidence -o log.jsonl",
    ),
    "squad": LogFormat(
        "demur.importers.squad:SquadPredictions",
        "SQuAD 2: predictions, null odds and N-best lists of run_qa.py, with the references.",
        "demur import squad eval_predictions.json eval_null_odds.json dev-v2.0.json -o log.jsonl",
    ),
    "huggingface": LogFormat(
        "demur.importers.huggingface:HuggingFacePipeline",
        "Hugging Face: output of text-classification and zero-shot pipelines; --gold joins the targets.",
        "demur import huggingface out.json --gold test.csv --on row -o log.jsonl",
    ),
    "mlflow": LogFormat(
        "demur.importers.mlflow:MlflowResults",
        "MLflow: the table of mlflow.evaluate, that of mlflow.genai.evaluate as .csv or .json, and traces.",
        "demur import mlflow eval_results_table.json -o log.jsonl",
    ),
    "openai-evals": LogFormat(
        "demur.importers.openai_evals:OpenAIEvents",
        "OpenAI evals: the event log of a run.",
        "demur import openai-evals run.jsonl -o log.jsonl",
    ),
    "openai-batch": LogFormat(
        "demur.importers.openai_batch:OpenAIBatch",
        "OpenAI's Batch API: output with logprobs or several choices; --gold joins the targets.",
        "demur import openai-batch output.jsonl --gold test.csv --on custom_id -o log.jsonl",
    ),
    "langsmith": LogFormat(
        "demur.importers.langsmith:LangSmithExperiment",
        "LangSmith: an experiment that to_pandas gave, as .csv, .jsonl or .parquet.",
        "demur import langsmith experiment.csv -o log.jsonl",
    ),
    "lighteval": LogFormat(
        "demur.importers.lighteval:LightevalDetails",
        "lighteval: details of a task as .parquet.",
        "demur import lighteval details_task.parquet -o log.jsonl",
    ),
    "deepeval": LogFormat(
        "demur.importers.deepeval:DeepevalRun",
        "DeepEval: the file of a test run, or a result that was dumped.",
        "demur import deepeval test_run.json --metric 'Exact Match' -o log.jsonl",
    ),
    "ragas": LogFormat(
        "demur.importers.ragas:RagasTable",
        "Ragas: the table of evaluate as .csv or .jsonl.",
        "demur import ragas evaluate.csv --metric exact_match -o log.jsonl",
    ),
    "watson": LogFormat(
        "demur.importers.watson:WatsonResults",
        "Watson Assistant: test results of its testing tool.",
        "demur import watson test-out.csv -o log.jsonl",
    ),
    "nlu-devops": LogFormat(
        "demur.importers.nlu_devops:NluDevOpsResults",
        "NLU.DevOps: metadata.json of tests of LUIS and others.",
        "demur import nlu-devops metadata.json -o log.jsonl",
    ),
    "sclite": LogFormat(
        "demur.importers.speech:RecognisedWords",
        "sclite: alignments as .sgml, or a CTM of words with confidences and an STM of references.",
        "demur import sclite hyp.sgml -o words.jsonl",
    ),
    "beetle": LogFormat(
        "demur.importers.beetle:BeetleLog",
        "BEETLE II: speech_act, matched, contradictory, not_mentioned, and optionally consistency and extra.",
        "demur import beetle tutor-log.jsonl -o turns.jsonl",
    ),
    "arrays": LogFormat(
        "demur.importers.numpy_arrays:ClassifierArrays",
        "scikit-learn and Trainer: predict_proba and y_true as .npy or .npz, and tables with a column for each label.",
        "demur import arrays proba.npy y_true.npy -o log.jsonl",
    ),
}
"""The importers of logs by name; a file goes to the first that recognises it."""

ENDINGS = (".eval", ".npz", ".sgml", ".xlsx")
"""Endings of files that are read though no table has them, and that hold a whole log each."""

CORPORA = ("demur.importers.dstc:IMPORTER",)
"""Where the importers of folders are, each as "module:name"."""


@dataclass(frozen=True)
class CorpusImporter:
    """A format whose files and folders are read as tables of N-best lists wherever a table is.

    `holds` tells by content whether a path is of this format, `read` gives its rows, with their notes, and `columns`
    are the names that rows may have.
    """

    holds: Callable[[Path], bool]
    read: Callable[..., Any]
    columns: tuple[str, ...]


def importer_of(path: str | Path) -> CorpusImporter | None:
    """The importer of the corpus that a folder or file is; None for tables and logs."""
    return next((one for one in _corpora() if one.holds(Path(path))), None)


@cache
def _corpora() -> tuple[CorpusImporter, ...]:
    return tuple(load(place) for place in CORPORA)


@cache
def log_importers() -> "tuple[Importer, ...]":
    """The importers of logs, in the order in which they are asked."""
    return tuple(load(one.place)() for one in REGISTRY.values())


@job
def import_dstc(
    source: Annotated[
        str | Path,
        Argument(
            "Folder with a log.json and a label.json for each dialogue, at any depth, .gz too; a .flist of sessions; "
            "or a .jsonl with a dialogue a line.",
            metavar="FOLDER",
        ),
    ],
    *,
    table: Annotated[
        Literal["lists", "turns", "dialogues"],
        Option(
            "lists: N-best acts of each turn, for nbest. turns: how the live understanding took each, by types of "
            "acts. dialogues: success, turns, conditions, questionnaire from 1 to 6, caller as group. Both for outcome."
        ),
    ] = "lists",
    ontology: Annotated[
        Path | None,
        Option(
            "The challenge's ontology; by default ontology*.json in the folder or up to two above it.", metavar="FILE"
        ),
    ] = None,
    labels: Annotated[
        Path | None, Option("Folder of the label files, where they are not beside the logs.", metavar="FOLDER")
    ] = None,
    asr: Annotated[
        Literal["live", "batch"], Option("Whose sentences to keep: the live recogniser's, or the later batch's.")
    ] = "live",
    seed: NoSeed = 0,  # noqa: ARG001
    step: Step = silent,
) -> "DstcTable":
    """Dialogues of the Dialog State Tracking Challenge (2 or 3), as tables for `demur nbest` and `demur outcome`.

    The rows are read while they are iterated over; their `notes` are complete after the last.
    """
    from demur.importers.dstc import read_dstc, read_dstc_table

    if table == "lists":
        return read_dstc(Path(source), labels=labels, ontology=ontology, asr=asr, step=step)
    if ontology is not None:
        raise UsageError(f"`ontology` goes with `table` lists: of {table} no items are counted")
    if asr != "live":
        raise UsageError(f"`asr` goes with `table` lists: {table} hold no sentences")
    return read_dstc_table(Path(source), table, labels=labels, step=step)


def import_log(name: str) -> Callable[..., "ImportedRows"]:
    """The job that reads the logs of one tool as rows."""

    @job
    @reads_logs
    def read(
        *data: Annotated[Any, Argument(f"{REGISTRY[name].files} Also .gz and .zst.", metavar="FILES")],
        confidence: Annotated[
            str | None, Option("The confidence to take, where a log has several.", metavar="NAME")
        ] = None,
        columns: Annotated[dict[str, str] | None, name_columns("confidence=scores[0].value")] = None,
        seed: NoSeed = 0,  # noqa: ARG001
        step: Step = silent,
    ) -> "ImportedRows":
        from demur.importers.reading import read_log

        step("reading", 0, 1)
        chosen = {} if confidence is None else {"confidence": confidence}
        return read_log(name, data, {**(columns or {}), **chosen})

    read.__doc__ = f"Answers in logs of {REGISTRY[name].files.partition(':')[0]}, as a table."
    return read


JOBS = (
    *(Job(f"import {name}", import_log(name), present="", example=one.example) for name, one in REGISTRY.items()),
    Job("import dstc2", import_dstc, present="", example="demur import dstc2 FOLDER -o train.jsonl.gz"),
    Job(
        "import dstc3",
        import_dstc,
        present="",
        example="demur import dstc3 FOLDER --ontology ontology_dstc3.json -o test.jsonl",
    ),
)
