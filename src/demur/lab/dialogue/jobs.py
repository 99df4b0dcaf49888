"""The jobs on dialogues in the loop: their options are declared here. Only light modules are imported."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from demur.core.jobs import Argument, Job, Option, Output, job
from demur.core.options import Level, Replicates, Sampling, Seed
from demur.core.show.results import Step, silent
from demur.errors import UsageError
from demur.nbest_lists.jobs import scorer_names as names_in

if TYPE_CHECKING:
    from demur.lab.dialogue.experiments import ConfusionSweep, Predictors, Rejection
    from demur.lab.dialogue.injected import InjectedPrices
    from demur.lab.dialogue.learning import Learning
    from demur.lab.dialogue.simulate import Simulation

MANAGERS = ("state-machine", "mdp", "belief", "belief-learned", "perfect")


def numbers_in(text: str) -> tuple[float, ...]:
    """The numbers of a text, separated by commas."""
    return tuple(float(part) for part in text.split(","))


def manager_names(text: str) -> tuple[str, ...]:
    """The managers of a text, separated by commas; a text that names others is the command of one.

    >>> manager_names("mdp,belief"), manager_names("./mine --seed 1,2")
    (('mdp', 'belief'), ('./mine --seed 1,2',))
    """
    names = names_in(text)
    return names if set(names) <= set(MANAGERS) else (text,)


def names_among(text: str, known: tuple[str, ...], parse: Callable[[str], tuple[str, ...]] = names_in) -> Option:
    """An option of names, separated by commas."""
    return Option(
        text,
        metavar="NAMES",
        parse=parse,
        takes=f"names separated by commas: {', '.join(known)}",
        check=lambda names: len(names) > 0 and set(names) <= set(known),
        write=",".join,
    )


def list_files(default: str) -> Argument:
    """The argument of N-best lists with dialogues, and what is taken where none is named."""
    about = f"N-best lists with dialogues: .jsonl and others, or folders of DSTC2; default: {default}."
    return Argument(about, metavar="[FILES]", optional=True)


DialogueTable = Annotated[
    Path | None,
    Option("Table with dialogue, success and turns; default: these columns of the lists.", metavar="FILE"),
]


def rates(text: str, most: float = 1.0) -> Option:
    """An option of rates, separated by commas."""
    return Option(
        text,
        metavar="RATES",
        parse=numbers_in,
        takes=f"numbers from 0 to {most:g} separated by commas, such as 0,0.2,0.4",
        python=f"numbers from 0 to {most:g}, such as (0, 0.2, 0.4)",
        check=lambda values: len(values) > 0 and all(0 <= one <= most for one in values),
        write=lambda values: ",".join(f"{one:g}" for one in values),
    )


DomainName = Annotated["str | Path", Argument("A TOML file of a domain, or town, the bundled one.", metavar="DOMAIN")]
Managers = Annotated[
    "tuple[str, ...] | Callable[[Any], Any]",
    Option(
        "Managers separated by commas: state-machine, mdp, belief, belief-learned, perfect (no errors); or the command "
        "of one of your own.",
        flag="--manager",
        metavar="NAMES",
        parse=manager_names,
        takes="names separated by commas, or a command",
        write=",".join,
    ),
]
Noise = Annotated[
    tuple[float, ...],
    rates("Share of turns whose best hypothesis is wrong; with --channel words the word error rate.", 0.8),
]
ChannelKind = Annotated[
    Literal["acts", "words"],
    Option("Confuse acts, or words that are then parsed by the domain's grammar."),
]
ListLength = Annotated[int, Option("Hypotheses of a list at most.", minimum=1, maximum=20)]
Confidences = Annotated[
    str,
    Option(
        "good (right as often as they say), flat, overconfident, good-tp1; with --channel words also const, avgword, "
        "infev and these with -tp1.",
        metavar="NAME",
    ),
]
Scale = Annotated[float, Option("Multiplies log posteriors: above 1 confidences are too bold.", minimum=0, maximum=20)]
Threshold = Annotated[float, Option("Reject lists whose best confidence is below this.", minimum=0, maximum=1)]
DialogueCount = Annotated[int, Option("Dialogues in each condition.", minimum=2)]
PolicyFile = Annotated[Path | None, Option("The policy of the manager: a JSON file of demur learn.", metavar="JSON")]
Keep = Annotated[
    Path | None,
    Option("Keep finished dialogues in this folder; the same command continues from them.", metavar="FOLDER"),
]
Processes = Annotated[
    int | None, Option("Processes; default by the size of the work. Rows are the same for any number.", minimum=1)
]


@job
def simulate(
    domain: DomainName,
    *,
    managers: Managers = ("state-machine",),
    noise: Noise = (0.2,),
    channel: ChannelKind = "acts",
    nbest: ListLength = 5,
    confidences: Confidences = "good",
    scale: Scale = 1.0,
    threshold: Threshold = 0.0,
    dialogues: DialogueCount = 200,
    policy: PolicyFile = None,
    keep: Keep = None,
    processes: Processes = None,
    level: Level = 0.95,
    seed: Seed = 0,
    step: Step = silent,
) -> "Simulation":
    """Simulate users who talk to dialogue managers over a noisy channel, and write the logs.

    In Python a manager of your own is a function that takes the domain and gives, for each dialogue, a function from
    N-best lists to the system's act as text. `.turns` has the N-best lists, `.answers` what the best hypotheses stand
    for, `.dialogues` success, turns, reward, concept efficiency and seconds.
    """
    from demur.lab.dialogue.channel import ChannelSettings
    from demur.lab.dialogue.domain import TaskDomain
    from demur.lab.dialogue.managers import read_policy
    from demur.lab.dialogue.simulate import Condition, SimulationPlan, simulate_plan

    TaskDomain.read(domain)
    own = managers if callable(managers) else None
    names = ("own",) if callable(managers) else tuple(dict.fromkeys(managers))
    if policy is not None and len(names) > 1:
        raise UsageError("`policy` goes with one manager")
    lines = [ChannelSettings(channel, one, nbest, confidences, scale) for one in dict.fromkeys(noise)]
    conditions = tuple(Condition(name, line, threshold) for line in lines for name in names)
    policies = {} if policy is None else {names[0]: read_policy(policy)}
    plan = SimulationPlan(str(domain), conditions, dialogues, seed, policies, own)
    return simulate_plan(plan, keep=keep, processes=processes, level=level, step=step)


NoiseLevels = Annotated[tuple[float, ...], rates("Levels of noise, each with as many dialogues.", 0.8)]
Seeds = Annotated[int, Option("Seeds from which policies are learned; the best of all is kept.", minimum=1, maximum=50)]
Rounds = Annotated[int, Option("Rounds of learning.", minimum=1, maximum=1000)]


@job
def learn(
    domain: DomainName,
    *,
    manager: Annotated[Literal["mdp", "belief-learned"], Option("Whose policy is learned.")] = "belief-learned",
    noise: NoiseLevels = (0.0, 0.15, 0.3, 0.45),
    rounds: Rounds = 10,
    dialogues: Annotated[int, Option("Dialogues of a round.", minimum=10)] = 250,
    seeds: Seeds = 3,
    processes: Processes = None,
    level: Level = 0.95,
    seed: Seed = 0,
    step: Step = silent,
) -> "Learning":
    """Learn the policy of a dialogue manager by simulation, and compare it with the hand-crafted one."""
    from demur.lab.dialogue.domain import TaskDomain
    from demur.lab.dialogue.learning import Lessons, learn_policy

    TaskDomain.read(domain)
    lessons = Lessons(str(domain), manager, tuple(noise), rounds, dialogues, seeds, seed)
    return learn_policy(lessons, processes=processes, level=level, step=step)


LoopDomain = Annotated["str | Path", Option("A TOML file of a domain, or town.", flag="--domain", metavar="DOMAIN")]
LoopManagers = Annotated[
    tuple[str, ...],
    names_among("Managers separated by commas: state-machine, mdp, belief, belief-learned.", MANAGERS, manager_names),
]
Qualities = Annotated[
    tuple[str, ...],
    names_among("Qualities of confidences, separated by commas.", ("good", "flat", "overconfident")),
]


LoopFiles = Annotated[
    Any,
    Argument(
        "None: what users say depends on what the system hears, so recorded dialogues cannot be used.",
        metavar="[FILES]",
        optional=True,
    ),
]


def _refuse_recorded(files: tuple[Any, ...]) -> None:
    """Say why an experiment that changes what a system hears takes no recorded dialogues."""
    if files:
        raise UsageError(
            f"{files[0]}: this experiment changes what the system hears, and users would have answered otherwise; "
            "recorded dialogues such as those of DSTC2 cannot show that, only a system in the loop (`domain`, "
            "`manager`). `experiment predictors` and `experiment reward` read recorded dialogues"
        )


@job
def confusion(
    *files: LoopFiles,
    domain: LoopDomain = "town",
    manager: LoopManagers = ("state-machine",),
    noise: NoiseLevels = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    confidences: Qualities = ("good", "flat", "overconfident"),
    dialogues: DialogueCount = 100,
    processes: Processes = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "ConfusionSweep":
    """ICE of simulated dialogues by the confusion rate of the channel: section 3 of Thomson et al. (2008)."""
    from demur.lab.dialogue.experiments import Loop, confusion_experiment

    _refuse_recorded(files)
    loop = Loop(str(domain), manager, noise, dialogues, confidences, seed=seed, processes=processes)
    return confusion_experiment(loop, Sampling(level, replicates, seed), step)


@job
def predictors(
    *files: Annotated[Any, list_files("simulated dialogues")],
    outcomes: DialogueTable = None,
    group: Annotated[str, Option("Of files: the column of managers.", metavar="COLUMN")] = "manager",
    by: Annotated[str | None, Option("Of files: the column of conditions.", metavar="COLUMN")] = None,
    domain: LoopDomain = "town",
    manager: LoopManagers = ("state-machine", "belief"),
    noise: NoiseLevels = (0.1, 0.25, 0.4),
    confidences: Qualities = ("good", "flat", "overconfident"),
    dialogues: DialogueCount = 60,
    processes: Processes = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "Predictors":
    """How well ICE, WSER, NCE, oracle error and others predict the reward of dialogues, and of conditions.

    Simulated conditions combine levels of noise, qualities of confidences, and lists of 1 and 5 hypotheses.
    """
    from demur.lab.dialogue.experiments import Loop, predictors_of, recorded_lists, simulated_conditions

    sampling = Sampling(level, replicates, seed)
    if files:
        step("reading", 0, 1)
        return predictors_of(recorded_lists(files, outcomes, group, by), sampling, (sampling.note,))
    loop = Loop(str(domain), manager, noise, dialogues, confidences, (1, 5), seed=seed, processes=processes)
    return predictors_of(simulated_conditions(loop.run(step)), sampling, (loop.note, sampling.note))


@job
def thresholds(
    *files: LoopFiles,
    domain: LoopDomain = "town",
    manager: LoopManagers = ("state-machine", "belief"),
    noise: NoiseLevels = (0.3,),
    cutoffs: Annotated[tuple[float, ...], rates("Confidences below which lists are rejected, in turn.")] = (
        *(0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
    ),
    dialogues: DialogueCount = 200,
    processes: Processes = None,
    level: Level = 0.95,
    seed: Seed = 0,
    step: Step = silent,
) -> "Rejection":
    """Whole dialogues while the rejection threshold moves: the closing remarks of Artstein (2011) put to the test."""
    from demur.lab.dialogue.experiments import Loop, threshold_experiment

    _refuse_recorded(files)
    rising = tuple(sorted(set(cutoffs)))
    loop = Loop(str(domain), manager, noise, dialogues, thresholds=rising, seed=seed, processes=processes)
    return threshold_experiment(loop, Sampling(level, seed=seed), step)


@job
def injected(
    *files: LoopFiles,
    domain: LoopDomain = "town",
    manager: Annotated[Literal["state-machine", "belief"], Option("The manager of the guide.")] = "state-machine",
    rate: Annotated[float, Option("Share of turns with an error, where one kind is alone.", above=0, maximum=1)] = 0.2,
    dialogues: Annotated[
        int, Option("Dialogues with each kind of errors; the model has twice as many.", minimum=20)
    ] = 150,
    level: Level = 0.95,
    seed: Seed = 0,
    step: Step = silent,
) -> "InjectedPrices":
    """What injected errors of chosen kinds cost, and what a model predicts: section 6 of Dzikovska et al. (2012)."""
    from demur.lab.dialogue.injected import injected_experiment

    _refuse_recorded(files)
    return injected_experiment(str(domain), manager, rate=rate, dialogues=dialogues, seed=seed, level=level, step=step)


_ROWS = (".parquet", ".jsonl", ".jsonl.gz", ".jsonl.zst")

JOBS = (
    Job(
        "simulate",
        simulate,
        present="demur.lab.dialogue.presentation:of_simulation",
        example="demur simulate town --manager state-machine,belief --noise 0,0.2,0.4 -o calls.parquet",
        about="`-o calls.parquet` (or .jsonl .jsonl.gz .jsonl.zst) writes the N-best lists, and calls-answers.parquet "
        "and calls-dialogues.parquet beside it. Other endings write the table of conditions, or its figure.",
        endings=tuple((ending, "demur.lab.dialogue.simulate:write_calls") for ending in _ROWS),
    ),
    Job(
        "learn",
        learn,
        present="demur.lab.dialogue.learning:of_learning",
        example="demur learn town --manager mdp --save mdp.json -o curve.svg",
        about="`demur simulate --policy FILE` plays dialogues with the policy that `--save` wrote.",
        outputs=(
            Output(
                "--save",
                "Write the policy to this file.",
                "demur.lab.dialogue.learning:write_policy",
                metavar="FILE.json",
                ending=".json",
            ),
        ),
    ),
    Job(
        "experiment confusion",
        confusion,
        present="demur.lab.dialogue.experiments:of_confusion",
        example="demur experiment confusion -o confusion.svg",
    ),
    Job(
        "experiment predictors",
        predictors,
        present="demur.lab.dialogue.experiments:of_predictors",
        example="demur experiment predictors --dialogues 100 -o predictors.svg",
    ),
    Job(
        "experiment thresholds",
        thresholds,
        present="demur.lab.dialogue.experiments:of_rejection",
        example="demur experiment thresholds --noise 0.3 -o thresholds.svg",
    ),
    Job(
        "experiment injected",
        injected,
        present="demur.lab.dialogue.injected:of_injected",
        example="demur experiment injected --rate 0.2 -o injected.svg",
    ),
)
