"""Options of jobs on outcomes, each declared once; their types and defaults are those of the functions below them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from demur.core.jobs import Argument, Option
from demur.core.options import MOST_REPLICATES, pair_of

Direction = Literal["backward", "forward", "both"]
Undefined = Literal["drop", "zero", "impute-mean"]
Rejections = Literal["counted", "left-out"]
UnknownLabels = Literal["refuse", "drop"]

MIN_PER_DIALOGUE = 2.0
"""How often a confusion must occur in a dialogue, on average, to be a feature."""

LEAST_REPLICATES = 50


def names_of(text: str) -> tuple[str, ...]:
    """The names in a text that are separated by commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError(text)
    return names


def features_text(features: str | Sequence[str]) -> str:
    """Sets and names of features as they are typed."""
    return features if isinstance(features, str) else "+".join(features)


TurnLogs = Annotated[
    Any,
    Argument(
        "Logs of answers: .jsonl .csv .tsv .parquet .arrow, also .gz and .zst; globs; run:NAME, a stored run; "
        "- for standard input.",
        metavar="FILES",
    ),
]
ModelFile = Annotated[Any, Argument("A model, as outcome fit writes it with --model.", metavar="MODEL")]
TableFile = Annotated[
    Any, Argument("A table with a row per dialogue: .csv .jsonl .parquet; - for standard input.", metavar="TABLE")
]
Outcomes = Annotated[
    Any,
    Option("Table of dialogues: dialogue, and outcome or pre and post; group.", metavar="FILE"),
]
OutcomeColumn = Annotated[str | None, Option("The column that is the outcome.", metavar="COLUMN")]
ExplainedColumn = Annotated[str, Option("The column that is to be explained.", metavar="COLUMN")]
MapOutcomes = Annotated[
    dict[str, str] | None,
    Option(
        "Name a column of the table of dialogues, as --map does. Repeatable.",
        metavar="NAME=COLUMN",
        parse=pair_of,
        takes="NAME=COLUMN",
        repeat=True,
        collect=dict,
    ),
]
Features = Annotated[
    str | Sequence[str],
    Option(
        "scores.fm, scores.precision, scores.recall, scores.all, conf, conf+scores.f, full, paradise; names of "
        "features, such as unclassified, or of columns; joined by +.",
        metavar="SETS",
        write=features_text,
    ),
]
Candidates = Annotated[
    Sequence[str] | None,
    Option(
        "Columns that may explain it, separated by commas; by default all columns of numbers.",
        metavar="NAMES",
        parse=names_of,
        takes="names of columns, separated by commas",
        write=",".join,
    ),
]
Group = Annotated[str | None, Option("Rows with the same value here are never split.", metavar="COLUMN")]
SearchDirection = Annotated[Direction, Option("Which way the search for terms may go.")]
SearchStart = Annotated[
    Literal["full", "null"] | None,
    Option("Where the search begins; by default null for forward, otherwise full."),
]
Keep = Annotated[tuple[str, ...], Option("A term that stays in any case. Repeatable.", metavar="TERM", repeat=True)]
MinPerDialogue = Annotated[float, Option("How often a confusion must occur in a dialogue, on average.", minimum=0)]
UndefinedPolicy = Annotated[Undefined, Option("What becomes of a score that a dialogue does not have.")]
RejectionPolicy = Annotated[
    Rejections, Option("Turns without a label: they lower recall, or are left out of all scores.")
]
Matched = Annotated[bool, Option("Only dialogues that have both turns and an outcome.")]
Folds = Annotated[
    int | None,
    Option("Folds of the nested validation; by default each dialogue, or each group, is one.", minimum=2),
]
Sets = Annotated[bool, Option("Compare the paper's feature sets as well.")]
Learners = Annotated[bool, Option("Compare with LASSO, a tree and a small neural net (needs scikit-learn).")]
ModelReplicates = Annotated[
    int,
    Option(
        f"Bootstrap replicates, at least {LEAST_REPLICATES} and at most {MOST_REPLICATES}; 0 for no bootstrap.",
        takes=f"0, or at least {LEAST_REPLICATES} and at most {MOST_REPLICATES}",
        check=lambda replicates: replicates == 0 or LEAST_REPLICATES <= replicates <= MOST_REPLICATES,
    ),
]
Extrapolate = Annotated[bool, Option("Predict although the system is unlike the training data, with a warning.")]
Pooled = Annotated[bool, Option("Take all turns together instead of dialogue by dialogue.")]
UnknownLabelPolicy = Annotated[
    UnknownLabels, Option("Turns with labels that the model does not know: refuse all, or drop these.")
]
