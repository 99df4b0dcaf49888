"""What is passed on of an utterance: through the noise channel at a level, or through a recogniser's command."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from demur.errors import UsageError
from demur.study.design import WozDesign

MOST_OUTPUT = 1 << 20
"""Bytes that a recogniser may print."""

SAMPLE = 60
"""Texts on which the rate of the channel is found, so that its word error rate is the one asked for."""


class NoisyInput:
    """Degrades typed utterances, each once: what comes out depends on the seed, the dialogue, the turn and the text."""

    def __init__(self, design: WozDesign, texts: Sequence[str] = ()) -> None:
        """Find the rates of the levels on the texts of the study and these."""
        self.design = design
        known = [*design.input.vocabulary, *texts, *(task.goal for task in design.tasks)]
        known += [response.text for response in design.responses] + [item.heard for item in design.training]
        self._channels: dict[float, Any] = {}
        noisy = [level for level in design.input.levels if level > 0]
        if noisy and design.input.by == "keyboard":
            from demur.understanding.noise import WordChannel

            sample = [known[place % len(known)] for place in range(max(SAMPLE, len(known)))]
            ids = [f"sample {place}" for place in range(len(sample))]
            for level in noisy:
                channel = WordChannel(known, wer=level, seed=design.seed)
                self._channels[level] = channel.fit(sample, ids=ids)

    @property
    def rates(self) -> dict[str, float]:
        """The rate of errors per word that each level has, for the log."""
        return {f"{level:g}": channel.rate for level, channel in self._channels.items()}

    def hear(self, text: str, level: float, dialogue: str, turn: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is passed on of a text, and what the log keeps beside it: words, errors, and their ratio.

        The confidence of a hypothesis is the geometric mean of the posteriors of its words: their product would be next
        to nothing for every longer utterance.
        """
        from demur.understanding.tokens import words

        channel = self._channels.get(level)
        if channel is None:
            said = words(text)
            return heard([(" ".join(said), 1.0)], self.design), _word_errors(0, len(said))
        from demur.understanding.noise import networks, sentences

        found = channel.recognise([text], ids=[f"{dialogue}/{turn}"])
        listed = [(found.texts[0], 1.0)]
        if self.design.input.nbest > 1 or self.design.input.confidences:
            network = networks(found)[0]
            best = sentences(network, self.design.input.nbest)
            listed = [(one.text, round(math.exp(one.logprob / len(network.slots)), 3)) for one in best]
        return heard(listed, self.design), _word_errors(found.errors[0], len(found.said[0].split()))


def heard(listed: Sequence[tuple[str, float | None]], design: WozDesign) -> dict[str, Any]:
    """The input as wizards and systems get it: the text, and the list with confidences where the study has them."""
    hypotheses = []
    for text, confidence in listed[: design.input.nbest]:
        known = design.input.confidences and confidence is not None
        hypotheses.append({"text": text, "confidence": confidence} if known else {"text": text})
    return {"text": hypotheses[0]["text"] if hypotheses else "", "nbest": hypotheses}


def _word_errors(errors: int, words: int) -> dict[str, Any]:
    return {"errors": errors, "words": words, "wer": errors / words if words else None}


def recognise(design: WozDesign, folder: Path, file: str, level: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the study's recogniser makes of a WAV file; where it fails nothing was heard, and the log says why."""
    command = [part.replace("{wav}", str(folder / file)) for part in design.input.recogniser]
    command = [part.replace("{level}", f"{level:g}") for part in command]
    try:
        environment = {**os.environ, "DEMUR_LEVEL": f"{level:g}"}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=design.input.timeout, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return heard([], design), {"failed": _reason(fault)}
    if done.returncode:
        return heard([], design), {"failed": f"the recogniser ended with {done.returncode}"}
    try:
        return heard(read_hypotheses(done.stdout[:MOST_OUTPUT]), design), {}
    except UsageError as fault:
        return heard([], design), {"failed": str(fault)}


def read_hypotheses(output: bytes) -> list[tuple[str, float | None]]:
    """The texts that a recogniser printed, with their confidences: plain text, or JSON.

    >>> read_hypotheses(b" when do you open ")
    [('when do you open', None)]
    >>> read_hypotheses(b'[{"text": "a", "confidence": 0.7}, "b"]')
    [('a', 0.7), ('b', None)]
    """
    text = output.decode(errors="replace").strip()
    if not text.startswith(("[", "{")):
        return [(" ".join(text.split()), None)]
    try:
        document = json.loads(text)
        items = document.get("nbest", [document]) if isinstance(document, dict) else document
        return [(one, None) if isinstance(one, str) else (str(one["text"]), one.get("confidence")) for one in items]
    except (ValueError, KeyError, AttributeError, TypeError):
        raise UsageError("the recogniser printed JSON without texts") from None


def _reason(fault: Exception) -> str:
    return "the recogniser took too long" if isinstance(fault, subprocess.TimeoutExpired) else str(fault)
