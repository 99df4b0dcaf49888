"""The command `demur judge`: draws what is judged, serves the pages, and writes the judged log at the end."""

from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.apps import web_extra
from demur.core.jobs import Argument, Job, Option
from demur.errors import UsageError
from demur.returns.options import OUT_OF_SCOPE, WITHHELD, Columns, OutOfScope, Withheld

if TYPE_CHECKING:
    from demur.judges.answers import AnswerLog
    from demur.judges.labels import LabelSet
    from demur.judges.session import Judging

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".csv", ".tsv", ".parquet", ".arrow")
OVERLAP = 0.2
MANY = 1000
"""Answers from which a sample is advised."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _labels(text: str) -> tuple[tuple[str, str | None], ...]:
    from demur.judges.labels import label_of

    return tuple(label_of(part) for part in text.split(","))


Log = Annotated[
    str,
    Argument("Logs of answers without `correct`: any table, or a log that an importer knows; globs.", metavar="LOG"),
]
Output = Annotated[
    Path | None,
    Option("The judged log; the folder beside it keeps what judges say. Default: LOG-judged.jsonl.", short="-o"),
]
Judges = Annotated[
    tuple[str, ...] | None,
    Option("Names of judges, who get a link each. Default: judge.", metavar="NAMES", parse=_names, takes="anna,ben"),
]
Sample = Annotated[
    int | None,
    Option("Judge so many inputs, drawn by strata of confidence; by default all.", minimum=2, metavar="N"),
]
Overlap = Annotated[
    float | None,
    Option("Share of the answers that every judge judges. Default: 0.2 with several judges.", minimum=0, maximum=1),
]
Labels = Annotated[
    tuple[tuple[str, str | None], ...] | None,
    Option(
        "Labels instead of right,wrong,unsure; NAME=MEANING says what one means for the log: right, wrong, withheld or "
        "unsure.",
        metavar="NAMES",
        parse=_labels,
        takes="names such as correct=right,partly=wrong,refused=withheld,unsure",
    ),
]
Guidelines = Annotated[
    Path | None, Option("Guidelines for judges: a text, or .toml with labels and their meaning.", metavar="FILE")
]
Shown = Annotated[
    tuple[str, ...],
    Option("A further column that judges see, such as target. Repeatable.", metavar="COLUMN", repeat=True),
]


def judge(
    *data: Log,
    output: Output = None,
    judges: Judges = None,
    sample: Sample = None,
    overlap: Overlap = None,
    labels: Labels = None,
    guidelines: Guidelines = None,
    show: Shown = (),
    columns: Columns = None,
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    host: Annotated[str, Option("Address to listen on; by default only this machine can come.")] = "127.0.0.1",
    port: Annotated[int, Option("Port; 0 takes a free one.", minimum=0, maximum=65535)] = 8379,
    dry_run: Annotated[bool, Option("Say what would be judged by whom, and end.")] = False,
    json: Annotated[bool, Option("With --dry-run: one JSON document.")] = False,
    seed: Annotated[int | None, Option("Seed of what is drawn and of all orders. Default: 0.", minimum=0)] = None,
) -> None:
    """Let people judge in the browser whether answers are right, one answer at a time."""
    from demur.judges.answers import read_answers
    from demur.judges.session import Judging, begin, folder_of
    from demur.returns.table import Reading

    if json and not dry_run:
        raise UsageError("`json` goes with `dry_run`; demur agreement FOLDER --json shows what judges said")
    asked = _Asked(judges, sample, overlap, labels, guidelines, show, seed)
    reading = Reading(columns=dict(columns or {}), out_of_scope=out_of_scope, withheld=withheld)
    log = read_answers(*data, reading=reading, show=show)
    where = output if output is not None else _usual_output(data)
    _check_output(where)
    folder = folder_of(where)
    if dry_run:
        _show_plan(asked.plan(log), as_json=json)
        return
    judging = Judging.open(folder) if folder.exists() else begin(folder, log, asked.label_set(), **asked.options())
    with closing(judging):
        _refuse_changes(judging, log, asked)
        _serve(judging, where, host, port)


@dataclass(frozen=True)
class _Asked:
    """What was asked for; None stands for what was begun with, or the default."""

    judges: tuple[str, ...] | None
    sample: int | None
    overlap: float | None
    labels: Sequence[tuple[str, str | None]] | None
    guidelines: Path | None
    show: tuple[str, ...]
    seed: int | None

    def label_set(self) -> "LabelSet":
        from demur.judges.labels import label_set, read_guidelines, usual_labels

        if self.guidelines is not None:
            return read_guidelines(self.guidelines, self.labels or ())
        return label_set(self.labels) if self.labels else usual_labels()

    def options(self) -> dict[str, Any]:
        judges = self.judges or ("judge",)
        overlap = self.overlap if self.overlap is not None else OVERLAP
        drawn = {"sample": self.sample, "overlap": overlap if len(judges) > 1 else 0.0, "seed": self.seed or 0}
        return {"judges": judges, "show": self.show, **drawn}

    def plan(self, log: "AnswerLog") -> Any:
        from demur.judges.session import make_plan

        return make_plan(log, self.label_set(), **self.options())

    def given(self) -> dict[str, Any]:
        """What was asked for outright, as the plan has it."""
        named = {"judges": self.judges, "sample": self.sample, "overlap": self.overlap, "seed": self.seed}
        labels = self.label_set() if self.labels or self.guidelines else None
        return {**named, "labels": labels, "show": self.show or None}


def _usual_output(data: Sequence[str]) -> Path:
    from demur.core.io.sources import stem_of

    if not data or data[0] == "-":
        return Path("judged.jsonl")
    path = Path(data[0])
    return path.with_name(f"{stem_of(path)}-judged.jsonl")


def _check_output(output: Path) -> None:
    """Refuse a judged log that could not be written, before anybody judges."""
    if not output.name.lower().endswith(ENDINGS):
        raise UsageError(f"`output` {output}: the name must end in one of {' '.join(ENDINGS)}")
    if output.is_dir():
        raise UsageError(f"`output` {output}: this is a directory; name a file in it")


def _refuse_changes(judging: "Judging", log: "AnswerLog", asked: _Asked) -> None:
    """Refuse to go on with another log, or with other options, than judging was begun with."""
    folder = judging.journal.folder
    if judging.plan.digest != log.digest:
        begun = ", ".join(judging.plan.files)
        rule = f"{folder} was begun with another log ({begun}), or that log has changed since"
        raise UsageError(f"{rule}; go on with that one, or judge this one with another -o")
    differences = judging.differences(asked.given())
    if differences:
        raise UsageError(f"{folder} was begun otherwise: {'; '.join(differences)}; go on so, or take another -o")


def _serve(judging: "Judging", output: Path, host: str, port: int) -> None:
    with web_extra("the pages of judges need"):
        from demur.apps.judge.server import serve
        from demur.apps.web.server import Address
    from demur.judges.presentation import JudgedAnswers, sentences_of, write_judged

    def announce(text: str) -> None:
        typer.echo(text, err=True)

    folder, states = judging.journal.folder, judging.states()
    announce(f"{sum(states.values()):,} answers to judge, {states['pending']:,} of them not judged yet.")
    if states["pending"] > MANY and judging.plan.sample is None:
        announce("note: --sample 300 would draw some of them, and the judged log would stand for all")
    announce(f"What judges say is kept in {folder}; {output} is written when this ends (Ctrl-C).")
    with ExitStack() as stack:
        stack.enter_context(suppress(KeyboardInterrupt))  # to end a server is no failure
        serve(judging, Address(host=host, port=port), announce=announce)
    found = JudgedAnswers.of(judging)
    write_judged(found, output)
    for sentence in (*sentences_of(found), *(f"warning: {one}" for one in found.warnings), f"wrote {output}"):
        announce(sentence)


def _show_plan(made: Any, *, as_json: bool) -> None:
    from demur.apps.cli.output import as_json as json_text

    document = plan_document(*made)
    if as_json:
        typer.echo(json_text(document))
        return
    taken, inputs, strata = document["drawn"], document["inputs"], len(document["strata"])
    drawn = f"{taken:,} of {inputs:,} inputs are drawn, by {strata} strata of confidence"
    start = drawn if taken < inputs else f"All {inputs:,} inputs are taken"
    known = document["known"]
    typer.echo(f"{start}; {known:,} of them {'needs' if known == 1 else 'need'} no judging.")
    answers = f"{document['answers']:,} answers are judged, equal ones once"
    typer.echo(f"{answers}: {document['shared']:,} of them by every judge.")
    for name, count in document["judges"].items():
        typer.echo(f"  {name}: {count:,}")


def plan_document(plan: Any, items: Sequence[Any], rows: Sequence[Any]) -> dict[str, Any]:
    """What would be judged by whom, as plain values."""
    from json import loads

    own = [tuple(loads(one.judges)) for one in items]
    inputs = {row.input: row.stratum for row in rows}
    counts = [sum(stratum == place for stratum in inputs.values()) for place in range(len(plan.sizes))]
    return {
        "files": list(plan.files),
        "systems": list(plan.systems),
        "inputs": plan.inputs,
        "drawn": len(inputs),
        "known": sum(stratum < 0 for stratum in inputs.values()),
        "strata": [{"inputs": size, "drawn": count} for size, count in zip(plan.sizes, counts, strict=True)],
        "answers": len(items),
        "shared": sum(len(one) > 1 for one in own),
        "judges": {name: sum(name in one for one in own) for name in plan.judges},
        "labels": list(plan.labels.names),
        "seed": plan.seed,
        "digest": plan.digest,
    }


JUDGE = Job(
    "judge",
    judge,
    present="",
    example="demur judge log.jsonl -o judged.jsonl --judges anna,ben --overlap 0.3 --sample 300",
    about="Run the command again to continue where you stopped. `demur agreement` shows a folder without serving it.",
)
