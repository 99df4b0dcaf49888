"""The signatures and help of `demur experiment`, which load nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.apps.cli.options import ListOptions, OutputOptions, SamplingOptions, with_options

experiments = typer.Typer(
    name="experiment",
    help="Experiments of the literature, on data of your own or on a bundled simulated study.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Trials = Annotated[
    list[str] | None,
    typer.Argument(
        help="Utterances with reference, and asr or cnet: .jsonl and others, or folders of DSTC2; default: a bundled "
        "study of a simulated restaurant guide."
    ),
]
Grammar = Annotated[
    Path | None, typer.Option("--grammar", help="Parses sentences; default that of a restaurant guide.", metavar="TOML")
]
Parser = Annotated[
    str | None,
    typer.Option(
        "--parser", help="A program that answers each line, a sentence, with a line of acts.", metavar="COMMAND"
    ),
]
Sentences = Annotated[int, typer.Option("--sentences", min=1, help="Sentences taken of each utterance.")]
Floor = Annotated[float, typer.Option("--floor", help="Least probability that ICE and ACE look at.")]
Scorers = Annotated[str, typer.Option("--scorers", help="Scorers, separated by commas.", metavar="NAMES")]


@experiments.callback()
def about() -> None:
    """Experiments of the literature, on data of your own or on a bundled simulated study."""


@experiments.command(epilog="Example: `demur experiment scorers -o table3.html`")
@with_options
def scorers(
    lists: ListOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    files: Trials = None,
    grammar: Grammar = None,
    parser: Parser = None,
    scorers: Scorers = "const,avgword,infev,infev-tp1",
    sentences: Sentences = 5,
    floor: Floor = 1e-3,
) -> None:
    """Scorers by measures, all from the same sentences: Table 3 of Thomson et al. (2008)."""
    from demur.apps.cli import experimenting

    source = experimenting.Source(files or [], lists, grammar, parser, floor=floor)
    experimenting.scorers(source, sampling, outputs, names=scorers, sentences=sentences)


@experiments.command(epilog="Example: `demur experiment lengths --by noise -o figure1.svg`")
@with_options
def lengths(
    lists: ListOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    files: Trials = None,
    grammar: Grammar = None,
    parser: Parser = None,
    by: Annotated[
        str | None, typer.Option("--by", help="The column of conditions, such as noise.", metavar="COLUMN")
    ] = None,
    scorer: Annotated[str, typer.Option("--scorer", help="What makes the confidences.", metavar="NAME")] = "infev",
    kept: Annotated[
        str, typer.Option("--kept", help="Numbers of sentences, separated by commas.", metavar="NUMBERS")
    ] = "1,2,3,5,10,20,50,100",
    floor: Floor = 1e-3,
) -> None:
    """Measures by noise and number of sentences: figure 1 of Thomson et al. (2008)."""
    from demur.apps.cli import experimenting

    source = experimenting.Source(files or [], lists, grammar, parser, floor=floor)
    experimenting.lengths(source, sampling, outputs, by=by, scorer=scorer, kept=kept)


@experiments.command(epilog="Example: `demur experiment reward --group manager -o figure2.svg`")
@with_options
def reward(
    lists: ListOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="N-best lists with dialogues: .jsonl and others, or folders of DSTC2; default: the bundled study."
        ),
    ] = None,
    dialogues: Annotated[
        Path | None,
        typer.Option(
            "--dialogues",
            help="Table with dialogue, success and turns; default: these columns of the lists.",
            metavar="FILE",
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", help="The column of groups, such as manager.", metavar="COLUMN")
    ] = None,
    measure: Annotated[str, typer.Option("--measure", help="What rewards are held against.", metavar="NAME")] = "ice",
    floor: Floor = 1e-3,
) -> None:
    """Reward of dialogues against the ICE of their lists, by dialogue manager: figure 2 of Thomson et al. (2008)."""
    from demur.apps.cli import experimenting

    source = experimenting.Source(files or [], lists, parses=False, floor=floor)
    experimenting.reward(source, sampling, outputs, dialogues=dialogues, group=group, measure=measure)


@experiments.command(epilog="Example: `demur experiment oracle --scorers infev,avgword -o figure3.svg`")
@with_options
def oracle(
    lists: ListOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    files: Trials = None,
    grammar: Grammar = None,
    parser: Parser = None,
    scorers: Scorers = "infev,avgword",
    sentences: Sentences = 5,
    floor: Floor = 1e-3,
) -> None:
    """ICE of dialogues against the oracle error of their lists, by scorer: figure 3 of Thomson et al. (2008)."""
    from demur.apps.cli import experimenting

    source = experimenting.Source(files or [], lists, grammar, parser, floor=floor)
    experimenting.oracle(source, sampling, outputs, names=scorers, sentences=sentences)
