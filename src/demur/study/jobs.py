"""The jobs on Wizard-of-Oz studies: their options are declared here, and nowhere else.

Only light modules are imported here, as every command loads this one for its help.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from demur.core.jobs import Argument, Confirm, Job, Option, job
from demur.core.options import NoSeed, Replicates, Seed
from demur.core.show.results import Step, silent
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.study.checks import StudyCheck, StudyStatus
    from demur.study.presentation import DemoStudy, ErasedPerson, ExportedStudy, NewStudy

StudyFolder = Annotated[str | Path, Argument("Folder of the study, with its study.toml.", metavar="STUDY")]


@job
def new_study(
    folder: Annotated[str | Path, Argument("A new folder.", metavar="FOLDER")],
    *,
    name: Annotated[str | None, Option("What tables call the study; by default as the folder.")] = None,
    seed: NoSeed = 0,  # noqa: ARG001
) -> "NewStudy":
    """Make the folder of a Wizard-of-Oz study, with a design to be edited."""
    from demur.study.folder import new_folder
    from demur.study.presentation import NewStudy

    place = Path(folder)
    design = new_folder(place, name or place.resolve().name)
    return NewStudy(place, design.name, len(design.conditions))


@job
def study_status(
    study: StudyFolder,
    *,
    half_width: Annotated[
        float, Option("How wide bands may be on average, above and below, for the plan.", above=0)
    ] = 0.1,
    studies: Annotated[int, Option("Studies to simulate for the plan.", minimum=20)] = 60,
    seed: Seed = 0,
    step: Step = silent,
) -> "StudyStatus":
    """Show how far a study has come, also while it is being served, and how many more people it needs."""
    from demur.study.checks import status_of

    return status_of(Path(study), half_width=half_width, studies=studies, seed=seed, step=step)


@job
def check_study(study: StudyFolder, *, seed: NoSeed = 0, step: Step = silent) -> "StudyCheck":  # noqa: ARG001
    """Check that wizards and systems had the same input, and that conditions and times are as they should be.

    Exits with 1 where a check fails.
    """
    from demur.study.checks import check_study

    return check_study(Path(study), step)


@job
def export_study(
    study: StudyFolder,
    *,
    to: Annotated[
        Path | None, Option("Folder for the tables; by default export in the study's.", metavar="FOLDER")
    ] = None,
    identifiers: Annotated[
        Literal["keep", "hash", "drop"],
        Option(
            "Names of people: kept, hashed with the study's secret, or replaced by random numbers without times of day."
        ),
    ] = "keep",
    salvage: Annotated[
        bool, Option("Export what comes before the damage of a journal that cannot be read, by default to salvaged.")
    ] = False,
    seed: NoSeed = 0,  # noqa: ARG001
) -> "ExportedStudy":
    """Write the tables of a study: trials, dialogues, responses, turns, participants and actions of wizards."""
    from demur.study.design import FILE
    from demur.study.export import TABLES, StudyRecord, study_tables, write_tables
    from demur.study.presentation import ExportedStudy

    record = StudyRecord.of(study, salvage=salvage)
    tables = study_tables(record, identifiers)
    target = record.folder / ("salvaged" if record.damage else "export") if to is None else Path(to)
    written = write_tables(target, tables, record.folder / FILE)
    rows = {TABLES[name]: table.height for name, table in tables.items()}
    files = {str(one): rows[one.name] for one in written if one.name in rows}
    return ExportedStudy(record.folder, files, identifiers, record.damage, len(record.events))


@job
def erase_person(
    study: StudyFolder,
    person: Annotated[
        str, Argument("A participant, as p0007, or the name another site has for them; or a wizard.", "PERSON")
    ],
    *,
    yes: Annotated[bool, Option("Do not ask for confirmation, which is asked for only at a terminal.", short="-y")] = (
        False
    ),
    seed: NoSeed = 0,  # noqa: ARG001
    confirm: Confirm = lambda _: True,
) -> "ErasedPerson":
    """Remove what a study keeps of one participant or wizard; it must not be served meanwhile.

    Dialogues of a wizard are those of participants too: they stay, and name nobody in the wizard's place.
    """
    import time

    from demur.study.export import StudyRecord, find_person
    from demur.study.folder import AUDIO
    from demur.study.journal import erase_events, erase_wizard_events
    from demur.study.presentation import ErasedPerson
    from demur.study.state import ERASED, StudyEvent

    record = StudyRecord.of(study)
    name, is_wizard = find_person(record, person)
    if not yes and not confirm(f"Erase everything of {name} for good?"):
        raise UsageError("nothing was erased: the question was not answered with yes")
    dialogues = [talk.id for talk in record.state.talks.values() if name in (talk.participant, talk.wizard)]
    earlier = sum(event.person.startswith(ERASED) for event in record.of_kind("erased"))
    left = f"{ERASED}{earlier + 1}" if is_wizard else name
    tombstone = StudyEvent(at=time.time(), kind="erased", person=left, body={"dialogues": dialogues})
    if is_wizard:
        events = erase_wizard_events(record.folder, name, tombstone)
        return ErasedPerson(record.folder, name, events, kept=len(dialogues), renamed=left)
    events = erase_events(record.folder, name, tombstone)
    recordings = [path for one in dialogues for path in (record.folder / AUDIO).glob(f"{one}-*.wav")]
    for path in recordings:
        path.unlink()
    return ErasedPerson(record.folder, name, events, len(recordings))


@job
def demo_study(
    folder: Annotated[str | Path, Argument("A new folder for the study.", metavar="FOLDER")],
    *,
    participants: Annotated[int, Option("How many take part.", minimum=2, maximum=1000)] = 36,
    wizards: Annotated[int, Option("How many wizards there are.", minimum=2, maximum=50)] = 6,
    replicates: Replicates = 500,
    seed: Seed = 1,
    step: Step = silent,
) -> "DemoStudy":
    """Run a whole study with simulated participants and wizards: its export and its benchmark graph."""
    from demur.gold_standard.jobs import gold
    from demur.study.checks import check_study
    from demur.study.demo import SimulatedStudy, write_simulated
    from demur.study.design import FILE, read_design
    from demur.study.export import StudyRecord, read_study_trials, study_tables, write_tables
    from demur.study.folder import new_folder
    from demur.study.presentation import DemoStudy

    place = Path(folder)
    new_folder(place)
    names = ", ".join(f'"w{number + 1:02}"' for number in range(wizards))
    text = (place / FILE).read_text(encoding="utf-8").replace('names = ["anna", "ben"]', f"names = [{names}]")
    (place / FILE).write_text(text, encoding="utf-8")
    design = read_design(place)
    write_simulated(place, SimulatedStudy(place, design, seed).run(participants, step))
    record = StudyRecord.of(place)
    tables = study_tables(record)
    files = write_tables(place / "export", tables, place / FILE)
    found: Any = gold(*read_study_trials([record]), replicates=replicates, seed=seed, step=step)
    holds = check_study(place).holds
    return DemoStudy(place, files, len(record.counted), participants, wizards, holds, found)


JOBS = (
    Job(
        "study new",
        new_study,
        present="demur.study.presentation:of_new",
        example="demur study new museum",
        figures=False,
    ),
    Job(
        "study status",
        study_status,
        present="demur.study.presentation:of_status",
        example="demur study status museum --half-width 0.1",
        figures=False,
    ),
    Job(
        "study check",
        check_study,
        present="demur.study.presentation:of_check",
        example="demur study check museum",
        figures=False,
        fails=lambda found: not found.holds,
    ),
    Job(
        "study export",
        export_study,
        present="demur.study.presentation:of_export",
        example="demur study export museum --identifiers hash",
        figures=False,
    ),
    Job(
        "study erase",
        erase_person,
        present="demur.study.presentation:of_erased",
        example="demur study erase museum p0007",
        figures=False,
    ),
    Job(
        "study demo",
        demo_study,
        present="demur.study.presentation:of_demo",
        example="demur study demo simulated -o benchmark.html",
    ),
)
