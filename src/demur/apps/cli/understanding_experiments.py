"""What the experiments on understanding do once their options are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from demur.apps.cli import output
from demur.apps.cli.options import OutputOptions, SamplingOptions, pair_of
from demur.apps.cli.output import steps
from demur.core.show.results import Step
from demur.errors import DataError, UsageError
from demur.lab import corpora
from demur.lab.understanding_experiments import (
    Experiment,
    Material,
    gate_experiment,
    growth_experiment,
    guide_material,
    of_experiment,
    read_material,
    tokenizer_experiment,
)

BUNDLED = "the bundled museum guide: 47 answers, 1,505 questions, 120 off-topic ones"


@dataclass(frozen=True, slots=True)
class Questions:
    """Where the questions come from: a file of the user's, or the bundled museum guide."""

    file: str | None = None
    map: tuple[str, ...] = ()

    def material(self, seed: int) -> Material:
        """The questions, divided into those to learn from and those to be tested on."""
        if self.file is None:
            if self.map:
                raise UsageError("--map names columns of a file of your own; name the file too")
            return replace(guide_material(corpora.museum(), seed=seed), notes=(BUNDLED,))
        columns = dict(pair_of(text, "--map", "NAME=COLUMN") for text in self.map)
        return read_material(self.file, columns=columns, seed=seed)


def tokenizers(
    questions: Questions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    *,
    tokens: str,
    wer: float,
    snr_db: float | None,
) -> None:
    """One model per tokenizer, through a noisy recogniser."""
    chosen = [name.strip() for name in tokens.split(",") if name.strip()]

    def run(material: Material, step: Step) -> Experiment:
        return tokenizer_experiment(material, tokens=chosen, wer=wer, snr_db=snr_db, step=step, **asdict(sampling))

    _delivered(run, questions, sampling, outputs, wer)


def growth(
    questions: Questions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    *,
    texts: tuple[Path, ...],
    tokens: str,
    wer: float,
) -> None:
    """A character grown by one domain after the other."""
    domains = {path.stem: _text(path) for path in texts} or corpora.domains()

    def run(material: Material, step: Step) -> Experiment:
        return growth_experiment(material, domains, tokens=tokens, wer=wer, step=step, **asdict(sampling))

    _delivered(run, questions, sampling, outputs, wer)


def gate(questions: Questions, sampling: SamplingOptions, outputs: OutputOptions, *, tokens: str, wer: float) -> None:
    """A gate before the interpreter against the interpreter's own confidence."""

    def run(material: Material, step: Step) -> Experiment:
        return gate_experiment(material, tokens=tokens, wer=wer, step=step, **asdict(sampling))

    _delivered(run, questions, sampling, outputs, wer)


def _delivered(
    run: Callable[[Material, Step], Experiment],
    questions: Questions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    wer: float,
) -> None:
    output.check(outputs)
    if not 0 <= wer <= 1:
        raise UsageError(f"--wer takes a word error rate from 0 to 1; got {wer:g}")
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        shown = of_experiment(run(questions.material(sampling.seed), step))
    seeded = f"seed {sampling.seed}, {sampling.replicates:,} replicates"
    output.deliver(replace(shown, notes=(*shown.notes, seeded)), outputs)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"--text {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as fault:
        raise DataError(f"--text {path} cannot be read as UTF-8 text: {fault}") from None
