"""The jobs of the lab: experiments of the literature and the demo, their options declared here, and nowhere else.

Only light modules are imported here, as every command loads this one for its help.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from demur.core.jobs import Argument, Job, Option, job
from demur.core.options import Level, Replicates, Sampling, Seed, Where
from demur.core.show.results import Step, silent
from demur.errors import UsageError
from demur.lab.dialogue.jobs import JOBS as DIALOGUE_JOBS
from demur.lab.dialogue.jobs import MANAGERS, DialogueTable, NoiseLevels, list_files
from demur.lab.dialogue.jobs import confusion as confusion
from demur.lab.dialogue.jobs import injected as injected
from demur.lab.dialogue.jobs import learn as learn
from demur.lab.dialogue.jobs import predictors as predictors
from demur.lab.dialogue.jobs import simulate as simulate
from demur.lab.dialogue.jobs import thresholds as thresholds
from demur.nbest_lists.jobs import (
    AcousticScale,
    Floor,
    ItemKind,
    ListColumns,
    ListOntology,
    Normalise,
    list_reading,
    scorer_names,
)
from demur.returns.options import Columns

if TYPE_CHECKING:
    from demur.lab.dialogue.experiments import Loop
    from demur.lab.nbest_experiments import ConditionTable, CurveExperiment, LengthSweep, RecordedStudy, ScorerTable
    from demur.lab.understanding_experiments import Demonstration, QuestionSet, UnderstandingExperiment
    from demur.nbest_lists.table import NBestReading
    from demur.understanding.noise import NoiseChannel

MUSEUM = "the bundled museum guide: 47 answers, 1,505 questions, 120 off-topic ones"


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
OffTopic = Annotated[bool, Option("Test on questions without an answer too; in the paper every question has one.")]
TokensName = Annotated[str, Option("What texts are made of: words, phones, mixed and others.", metavar="NAME")]


Utterances = Annotated[
    Any,
    Argument(
        "Utterances with reference, and asr or cnet: .jsonl and others, or folders of DSTC2; default: a bundled "
        "study of a simulated restaurant guide.",
        metavar="[FILES]",
        optional=True,
    ),
]
Grammar = Annotated[Path | None, Option("Parses sentences; default that of a restaurant guide.", metavar="TOML")]
ParserCommand = Annotated[
    str | Callable[[str], str] | None,
    Option("A program that answers each line, a sentence, with a line of acts.", metavar="COMMAND"),
]
ScorerNames = Annotated[
    tuple[str, ...],
    Option(
        "Scorers, separated by commas.",
        metavar="NAMES",
        parse=scorer_names,
        takes="names separated by commas, such as const,infev",
        write=",".join,
    ),
]
Simulated = Annotated[
    "str | Path | None",
    Option("Simulate dialogues in this domain, a TOML file or town.", flag="--simulate", metavar="DOMAIN"),
]
Calls = Annotated[int, Option("Simulated dialogues in each condition.", minimum=2)]
Sentences = Annotated[int, Option("Sentences taken of each utterance.", minimum=1)]


@job
def scorers(
    *files: Utterances,
    columns: ListColumns = None,
    where: Where = (),
    items: ItemKind = None,
    normalise: Normalise = False,
    ontology: ListOntology = None,
    grammar: Grammar = None,
    parser: ParserCommand = None,
    scorers: ScorerNames = ("const", "avgword", "infev", "infev-tp1"),
    sentences: Sentences = 5,
    acoustic_scale: AcousticScale = 1.0,
    floor: Floor = 1e-3,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "ScorerTable":
    """Scorers by measures, all from the same sentences: Table 3 of Thomson et al. (2008)."""
    from demur.lab.nbest_experiments import scorer_table

    chosen = _scorers(scorers)
    reading = list_reading(columns, where, items, normalise, ontology)
    settings = {"floor": floor, "level": level, "replicates": replicates, "seed": seed}
    study = _study(files, reading, grammar, parser, settings, sentences, acoustic_scale, step)
    return scorer_table(study, scorers=chosen, kept=sentences, step=step)


@job
def conditions(
    *files: Utterances,
    columns: ListColumns = None,
    where: Where = (),
    items: ItemKind = None,
    normalise: Normalise = False,
    ontology: ListOntology = None,
    grammar: Grammar = None,
    parser: ParserCommand = None,
    by: Annotated[str | None, Option("The column of noise; of the bundled study, noise.", metavar="COLUMN")] = None,
    noisy: Annotated[
        str | None, Option("Its value under noise; default: WER 26 %, or that of highest ICE.", metavar="NAME")
    ] = None,
    clean: Annotated[
        str | None, Option("Its value without; default: WER 11 %, or that of lowest ICE.", metavar="NAME")
    ] = None,
    few: Annotated[int, Option("Sentences of the short lists.", minimum=1)] = 5,
    many: Annotated[int, Option("Sentences of the long lists.", minimum=2)] = 100,
    acoustic_scale: AcousticScale = 1.0,
    floor: Floor = 1e-3,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "ConditionTable":
    """Noise, a poor scorer and short lists, by measures: Table 2 of Thomson et al. (2008)."""
    from demur.lab.nbest_experiments import columns_there, condition_table

    by = by if by or files else "noise"
    if by is None:
        there = ", ".join(columns_there(files))
        raise UsageError(f"`by` names the column of noise{there and f'; there are {there}'}")
    if few >= many:
        raise UsageError(f"`few` must be below `many`; got {few} and {many}")
    if (noisy is None) != (clean is None):
        raise UsageError("`noisy` and `clean` go together")
    reading = list_reading(columns, where, items, normalise, ontology, (by,))
    settings = {"floor": floor, "level": level, "replicates": replicates, "seed": seed}
    study = _study(files, reading, grammar, parser, settings, many, acoustic_scale, step)
    values = None if noisy is None or clean is None else (noisy, clean)
    values = values if values or files else ("WER 26 %", "WER 11 %")
    return condition_table(study, by=by, few=few, many=many, values=values, step=step)


@job
def lengths(
    *files: Utterances,
    columns: ListColumns = None,
    where: Where = (),
    items: ItemKind = None,
    normalise: Normalise = False,
    ontology: ListOntology = None,
    grammar: Grammar = None,
    parser: ParserCommand = None,
    by: Annotated[str | None, Option("The column of conditions, such as noise.", metavar="COLUMN")] = None,
    scorer: Annotated[str, Option("What makes the confidences.", metavar="NAME")] = "infev",
    kept: Annotated[
        tuple[int, ...],
        Option(
            "Numbers of sentences, separated by commas.",
            metavar="NUMBERS",
            parse=lambda text: tuple(sorted({int(part) for part in text.split(",")})),  # each once and in order
            takes="whole numbers from 1 separated by commas, such as 1,5,10",
            python="whole numbers from 1, such as (1, 5, 10)",
            check=lambda numbers: len(numbers) > 0 and min(numbers) >= 1,
            write=lambda numbers: ",".join(map(str, numbers)),
        ),
    ] = (1, 2, 3, 5, 10, 20, 50, 100),
    acoustic_scale: AcousticScale = 1.0,
    floor: Floor = 1e-3,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "LengthSweep":
    """Measures by noise and number of sentences: figure 1 of Thomson et al. (2008)."""
    from demur.lab.nbest_experiments import length_sweep

    (chosen,) = _scorers((scorer,))
    by = by if by or files else "noise"
    reading = list_reading(columns, where, items, normalise, ontology, () if by is None else (by,))
    settings = {"floor": floor, "level": level, "replicates": replicates, "seed": seed}
    study = _study(files, reading, grammar, parser, settings, max(kept), acoustic_scale, step)
    return length_sweep(study, by=by, scorer=chosen, kept=kept, step=step)


@job
def reward(
    *files: Annotated[Any, list_files("the bundled study")],
    columns: ListColumns = None,
    where: Where = (),
    items: ItemKind = None,
    normalise: Normalise = False,
    ontology: ListOntology = None,
    dialogues: DialogueTable = None,
    group: Annotated[str | None, Option("The column of groups, such as manager.", metavar="COLUMN")] = None,
    measure: Annotated[str, Option("What rewards are compared with.", metavar="NAME")] = "ice",
    simulated: Simulated = None,
    noise: NoiseLevels = (0.0, 0.15, 0.3, 0.45),
    calls: Calls = 100,
    floor: Floor = 1e-3,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "CurveExperiment":
    """Reward of dialogues against the ICE of their lists, by dialogue manager: figure 2 of Thomson et al. (2008)."""
    from demur.lab.nbest_experiments import reward_experiment
    from demur.nbest_lists.evaluate import NBestSettings
    from demur.nbest_lists.measures import OF_ACTS, OF_ITEMS

    known = [*OF_ACTS, *(key for key in OF_ITEMS if key != "item_ece")]
    if measure not in known:
        raise UsageError(f'`measure` takes one of {", ".join(known)}; got "{measure}"')
    settings = NBestSettings(floor=floor, level=level, replicates=replicates, seed=seed)
    if simulated is not None:
        from demur.lab.dialogue.experiments import simulated_rewards

        _refuse_files(files)
        return simulated_rewards(_loop(simulated, MANAGERS[:4], noise, calls, seed), measure, settings, step)
    step("reading", 0, 2)
    return reward_experiment(
        files,
        list_reading(columns, where, items, normalise, ontology),
        dialogues=dialogues,
        group=group if group or files else "manager",
        measure=measure,
        settings=settings,
        step=step,
    )


@job
def oracle(
    *files: Utterances,
    columns: ListColumns = None,
    where: Where = (),
    items: ItemKind = None,
    normalise: Normalise = False,
    ontology: ListOntology = None,
    grammar: Grammar = None,
    parser: ParserCommand = None,
    scorers: ScorerNames = ("infev", "avgword"),
    sentences: Sentences = 5,
    acoustic_scale: AcousticScale = 1.0,
    simulated: Simulated = None,
    noise: NoiseLevels = (0.1, 0.25, 0.4),
    calls: Calls = 100,
    floor: Floor = 1e-3,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "CurveExperiment":
    """ICE of dialogues against the oracle error of their lists, by scorer: figure 3 of Thomson et al. (2008)."""
    from demur.lab.nbest_experiments import oracle_experiment

    chosen = _scorers(scorers)
    settings: dict[str, Any] = {"floor": floor, "level": level, "replicates": replicates, "seed": seed}
    if simulated is not None:
        from demur.lab.dialogue.experiments import simulated_scorers
        from demur.nbest_lists.evaluate import NBestSettings

        _refuse_files(files)
        loop = _loop(simulated, ("belief",), noise, calls, seed, qualities=chosen, by="words")
        return simulated_scorers(loop, NBestSettings(**settings), step)
    reading = list_reading(columns, where, items, normalise, ontology)
    study = _study(files, reading, grammar, parser, settings, sentences, acoustic_scale, step)
    return oracle_experiment(study, scorers=chosen, kept=sentences, step=step)


def _refuse_files(files: tuple[Any, ...]) -> None:
    if files:
        raise UsageError("`simulated` makes dialogues; leave out the files")


def _loop(
    domain: str | Path, managers: tuple[str, ...], noise: tuple[float, ...], calls: int, seed: int, **more: Any
) -> "Loop":
    from demur.lab.dialogue.experiments import Loop

    return Loop(str(domain), managers, tuple(noise), calls, seed=seed, **more)


def _scorers(names: tuple[str, ...]) -> tuple[str, ...]:
    from demur.nbest_lists.asr.scorers import check_name

    for name in names:
        check_name(name)
    return tuple(dict.fromkeys(names))


def _study(
    files: tuple[Any, ...],
    reading: "NBestReading",
    grammar: Path | None,
    parser: Any,
    settings: dict[str, Any],
    sentences: int,
    scale: float | Literal["tuned"],
    step: Step,
) -> "RecordedStudy":
    """The utterances of an experiment; a note says so where a user's sentences are parsed by the bundled grammar."""
    from demur.lab.nbest_experiments import RecordedStudy
    from demur.nbest_lists.asr.scorers import BUNDLED_GRAMMAR, parser_of
    from demur.nbest_lists.evaluate import NBestSettings

    step("reading", 0, 1)
    study = RecordedStudy.read(files, reading, parser_of(grammar, parser), NBestSettings(**settings), sentences)
    study = replace(study, scale=scale)
    return replace(study, notes=(BUNDLED_GRAMMAR,)) if files and not (grammar or parser) else study


@job
def tokenizers(
    data: Questions = None,
    *,
    tokens: Annotated[
        tuple[str, ...],
        Option(
            "Tokenizers, separated by commas; the first is the baseline.",
            metavar="NAMES",
            parse=lambda text: tuple(name.strip() for name in text.split(",") if name.strip()),
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
    heard: Annotated[
        Any,
        Option(
            "Table of what a recogniser wrote for test questions: id and heard; instead of --wer. Others are left out.",
            metavar="FILE",
        ),
    ] = None,
    off_topic: OffTopic = False,
    columns: Columns = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "UnderstandingExperiment":
    """Words, phones and both under recognition errors: figures 1 and 2 of Artstein (2011)."""
    from demur.lab.understanding_experiments import tokenizer_experiment

    questions, channel = _questions(data, columns, seed, step, heard=heard, off_topic=off_topic, wer=wer, speech=speech)
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
    off_topic: OffTopic = False,
    columns: Columns = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "UnderstandingExperiment":
    """A character grown by questions made from texts of other domains: figure 3 of Artstein (2011)."""
    from demur.lab.corpora import domains
    from demur.lab.understanding_experiments import growth_experiment
    from demur.understanding.questions import read_texts

    others = read_texts(texts) or domains()
    questions, channel = _questions(data, columns, seed, step, off_topic=off_topic, wer=wer)
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
    from demur.lab.understanding_experiments import gate_experiment

    questions, channel = _questions(data, columns, seed, step, off_topic=True, wer=wer)
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
    """Train three models on a bundled museum guide, evaluate them on noisy speech, and show the results."""
    from demur.lab.understanding_experiments import demonstrate

    return demonstrate(Sampling(level, replicates, seed), logs, step)


def _questions(
    data: Any,
    columns: dict[str, str] | None,
    seed: int,
    step: Step,
    *,
    off_topic: bool,
    heard: Any = None,
    **noise: float | None,
) -> tuple["QuestionSet", "NoiseChannel | None"]:
    """The questions of a user or of the bundled museum guide, divided into train and test, and what they pass."""
    from demur.lab.corpora import museum
    from demur.lab.noise import channel_of, read_recorded
    from demur.lab.understanding_experiments import read_questions, split_corpus

    step("reading", 0, 1)
    if data is None and columns:
        raise UsageError("`columns` names columns of a file of your own; name the file too")
    if data is None:
        questions = replace(split_corpus(museum(), seed=seed), notes=(MUSEUM,))
    else:
        questions = read_questions(data, columns=columns, seed=seed)
    if not off_topic:
        questions = questions.in_scope()
    if heard is not None:
        recorded = read_recorded(heard)
        return questions.only(recorded.texts), recorded
    return questions, channel_of(questions.texts, seed, **noise)


def _experiment(function: Callable[..., Any], present: str, example: str) -> Job:
    name = f"experiment {function.__name__}"
    return Job(name, function, present=f"demur.lab.{present}", example=f"demur {name} {example}")


JOBS = (
    _experiment(scorers, "nbest_experiments:of_scorers", "-o table3.html"),
    _experiment(conditions, "nbest_experiments:of_conditions", "--floor paper -o table2.html"),
    _experiment(lengths, "nbest_experiments:of_lengths", "--by noise -o figure1.svg"),
    _experiment(reward, "nbest_experiments:of_curves", "--group manager -o figure2.svg"),
    _experiment(oracle, "nbest_experiments:of_curves", "--scorers infev,avgword -o figure3.svg"),
    _experiment(tokenizers, "understanding_experiments:of_experiment", "--wer 0.3 -o figure1.svg"),
    _experiment(growth, "understanding_experiments:of_experiment", "-o figure3.svg"),
    _experiment(gate, "understanding_experiments:of_experiment", "-o gate.svg"),
    Job(
        "demo", demo, present="demur.lab.understanding_experiments:of_demonstration", example="demur demo -o demo.html"
    ),
    *DIALOGUE_JOBS,
)
