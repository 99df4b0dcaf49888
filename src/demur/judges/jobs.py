"""The jobs on judgements: their options are declared here. Only light modules are imported."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from demur.core.jobs import Argument, Job, job
from demur.core.options import Level, Replicates, Sampling, Seed
from demur.core.show.results import Step, silent

if TYPE_CHECKING:
    from demur.judges.presentation import JudgedAnswers


@job
def agreement(
    source: Annotated[
        "str | Path",
        Argument("The folder that demur judge keeps, or a table of judgements: item, judge, label.", metavar="SOURCE"),
    ],
    *,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "JudgedAnswers":
    """Measure how far judges agree: Cohen's and Fleiss' kappa, Krippendorff's alpha; of a folder, show progress too.

    Intervals are by the bootstrap over answers. `rows()` of a folder gives the judged log.
    """
    from demur.judges.presentation import read_judged

    step("reading", 0, 1)
    sampling = Sampling(level, replicates, seed)
    found = read_judged(source, **asdict(sampling))
    return replace(found, notes=(*found.notes, sampling.note))


_ROWS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".csv", ".tsv", ".parquet", ".arrow")

JOBS = (
    Job(
        "agreement",
        agreement,
        present="demur.judges.presentation:of_judged",
        example="demur agreement judged.judging -o judged.jsonl",
        gate="agreement.measures.krippendorff_alpha < 0.6",
        about="`-o` writes the judged log of a folder to .jsonl .jsonl.gz .jsonl.zst .csv .tsv .parquet .arrow.",
        endings=tuple((ending, "demur.judges.presentation:write_judged") for ending in _ROWS),
        figures=False,
    ),
)
