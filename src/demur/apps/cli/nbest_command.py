"""The signature and help of `demur nbest`, which load nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.apps.cli.options import ListOptions, OutputOptions, SamplingOptions, ScorerOptions


def nbest(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Tables of N-best lists: .jsonl .csv .parquet and others as for score; folders of DSTC2 or DSTC3."
        ),
    ],
    lists: ListOptions,
    scorers: ScorerOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    by: Annotated[str | None, typer.Option("--by", help="Slice by this column as well.", metavar="COLUMN")] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Compare the systems, paired by utterance.")] = False,
    systems: Annotated[
        list[str] | None,
        typer.Option("--system", help="With --compare: only these systems. Repeatable.", metavar="NAME"),
    ] = None,
    matched: Annotated[
        bool, typer.Option("--matched", help="With --compare: only utterances that all systems have.")
    ] = False,
    unpaired: Annotated[bool, typer.Option("--unpaired", help="With --compare: do not pair by id.")] = False,
    floor: Annotated[float, typer.Option("--floor", help="Least probability that ICE and ACE look at.")] = 1e-3,
    clip: Annotated[float, typer.Option("--clip", help="How near 0 and 1 the NCE lets confidences come.")] = 1e-7,
    recalibrate_on: Annotated[
        list[str] | None,
        typer.Option(
            "--recalibrate-on",
            help="Fit a recalibration of confidences on this file and show what it wins here. Repeatable.",
            metavar="FILE",
        ),
    ] = None,
    write_lists: Annotated[
        Path | None,
        typer.Option(
            "--write-lists",
            help="Write the lists as they were evaluated, recalibrated with --recalibrate-on: .jsonl, .gz or .zst.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """WSER, oracle, NCE and ICE of N-best lists with confidences, with intervals, and what the ICE is made of."""
    from demur.apps.cli import listing

    listing.nbest(
        files,
        lists,
        scorers,
        sampling,
        outputs,
        by=by,
        comparing=listing.Comparing(compare, tuple(systems or ()), matched, unpaired),
        floor=floor,
        clip=clip,
        recalibrate_on=recalibrate_on or [],
        write_lists=write_lists,
    )
