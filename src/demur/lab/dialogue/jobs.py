"""The jobs on dialogues in the loop: their options are declared here. Only light modules are imported."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from demur.core.jobs import Argument, Job, Option, job
from demur.core.options import Level, Seed
from demur.core.show.results import Step, silent
from demur.errors import UsageError

if TYPE_CHECKING:
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
    names = tuple(part.strip() for part in text.split(","))
    return names if set(names) <= set(MANAGERS) else (text,)


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
    Option("Keep finished dialogues in this folder; the same command goes on from them.", metavar="FOLDER"),
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
    """Simulated users talk to dialogue managers over a noisy channel; logs in the project's own tables.

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
    names = ("own",) if callable(managers) else tuple(managers)
    if policy is not None and len(names) > 1:
        raise UsageError("`policy` goes with one manager")
    lines = [ChannelSettings(channel, one, nbest, confidences, scale) for one in noise]
    conditions = tuple(Condition(name, line, threshold) for line in lines for name in names)
    policies = {} if policy is None else {names[0]: read_policy(policy)}
    plan = SimulationPlan(str(domain), conditions, dialogues, seed, policies, own)
    return simulate_plan(plan, keep=keep, processes=processes, level=level, step=step)


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
)
