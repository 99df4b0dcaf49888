"""The jobs of the lab: experiments of the literature and the demo, their options declared here, and nowhere else.

Only light modules are imported here, as every command loads this one for its help.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from demur.core.jobs import Argument, Job, Option, job
from demur.core.options import Level, Replicates, Sampling, Seed
from demur.core.show.results import Step, silent
from demur.errors import DataError, UsageError
from demur.returns.options import Columns

if TYPE_CHECKING:
    from demur.lab.demo import Demonstration
    from demur.lab.understanding_experiments import QuestionSet, UnderstandingExperiment

MUSEUM = "the bundled museum guide: 47 answers, 1,505 questions, 120 off-topic ones"


def names_in(text: str) -> tuple[str, ...]:
    """The names in a text, separated by commas.

    >>> names_in("words, mixed")
    ('words', 'mixed')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


Questions = Annotated[
    Any,
    Argument(
        "Questions with input and target (null or oos: no answer is right), and split (train, test) where you "
        "have one: .jsonl and others, - for standard input; default: a bundled museum guide.",
        metavar="[PAIRS]",
        optional=True,
    ),
]
WordErrorRate = Annotated[
    float,
    Option("Word error rate of the simulated recogniser; 0 leaves questions alone.", minimum=0, maximum=1),
]
TokensName = Annotated[str, Option("What texts are made of: words, phones, mixed and others.", metavar="NAME")]


@job
def tokenizers(
    data: Questions = None,
    *,
    tokens: Annotated[
        tuple[str, ...],
        Option(
            "Tokenizers, separated by commas; the first is the baseline.",
            metavar="NAMES",
            parse=names_in,
            write=",".join,
        ),
    ] = ("words", "phones1", "phones2", "phones3", "mixed"),
    wer: WordErrorRate = 0.3,
    speech: Annotated[
        float | None,
        Option(
            "Really speak the questions (espeak-ng), so many decibels above noise, and recognise them "
            "(pocketsphinx); instead of --wer.",
            metavar="DB",
        ),
    ] = None,
    columns: Columns = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "UnderstandingExperiment":
    """Words, phones and both under recognition errors: figures 1 and 2 of Artstein (2011)."""
    from demur.lab.noise import channel_of
    from demur.lab.understanding_experiments import tokenizer_experiment

    questions = _questions(data, columns, seed, step)
    channel = channel_of(questions.texts, seed, wer=wer, speech=speech)
    sampling = Sampling(level, replicates, seed)
    return tokenizer_experiment(questions, tokens=tokens, channel=channel, sampling=sampling, step=step)


@job
def growth(
    data: Questions = None,
    *,
    texts: Annotated[
        tuple[str, ...],
        Option(
            "Plain text of another domain. Repeatable; default: four bundled ones.",
            flag="--text",
            metavar="FILE",
            repeat=True,
        ),
    ] = (),
    tokens: TokensName = "words",
    wer: WordErrorRate = 0.0,
    columns: Columns = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "UnderstandingExperiment":
    """A character grown by questions made from texts of other domains: figure 3 of Artstein (2011)."""
    from demur.lab.corpora import domains
    from demur.lab.noise import channel_of
    from demur.lab.understanding_experiments import growth_experiment

    others = {Path(path).stem: _text(Path(path)) for path in texts} or domains()
    questions = _questions(data, columns, seed, step)
    channel = channel_of(questions.texts, seed, wer=wer)
    sampling = Sampling(level, replicates, seed)
    return growth_experiment(questions, others, tokens=tokens, channel=channel, sampling=sampling, step=step)


@job
def gate(
    data: Questions = None,
    *,
    tokens: TokensName = "words",
    wer: WordErrorRate = 0.0,
    columns: Columns = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "UnderstandingExperiment":
    """Understanding in two stages (Patel et al. 2006) against a threshold on the interpreter's own confidence."""
    from demur.lab.noise import channel_of
    from demur.lab.understanding_experiments import gate_experiment

    questions = _questions(data, columns, seed, step)
    channel = channel_of(questions.texts, seed, wer=wer)
    sampling = Sampling(level, replicates, seed)
    return gate_experiment(questions, tokens=tokens, channel=channel, sampling=sampling, step=step)


@job
def demo(
    *,
    logs: Annotated[
        Path | None, Option("Also write the models' logs, as JSONL, into this folder.", metavar="FOLDER")
    ] = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "Demonstration":
    """Train three models on a bundled museum guide, let them mishear, and show the whole story."""
    from demur.lab.demo import demonstrate

    return demonstrate(Sampling(level, replicates, seed), logs, step)


def _questions(data: Any, columns: dict[str, str] | None, seed: int, step: Step) -> "QuestionSet":
    """The questions of a user, or of the bundled museum guide, divided into those to learn from and the others."""
    from dataclasses import replace

    from demur.lab.corpora import museum
    from demur.lab.understanding_experiments import read_questions, split_corpus

    step("reading", 0, 1)
    if data is not None:
        return read_questions(data, columns=columns, seed=seed)
    if columns:
        raise UsageError("`columns` names columns of a file of your own; name the file too")
    return replace(split_corpus(museum(), seed=seed), notes=(MUSEUM,))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"`texts` {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as fault:
        raise DataError(f"`texts` {path} cannot be read as UTF-8 text: {fault}") from None


_UNDERSTANDING = "demur.lab.understanding_experiments:of_experiment"

JOBS = (
    Job(
        "experiment tokenizers",
        tokenizers,
        present=_UNDERSTANDING,
        example="demur experiment tokenizers --wer 0.3 -o figure1.svg",
    ),
    Job("experiment growth", growth, present=_UNDERSTANDING, example="demur experiment growth -o figure3.svg"),
    Job("experiment gate", gate, present=_UNDERSTANDING, example="demur experiment gate -o gate.svg"),
    Job("demo", demo, present="demur.lab.demo:of_demonstration", example="demur demo -o demo.html"),
)
