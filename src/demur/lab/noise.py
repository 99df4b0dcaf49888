"""Noise channels besides that of words: real speech where it is installed, and what a recogniser wrote down before.

Each is a `NoiseChannel`; `CHANNELS` has a line for each that an experiment can ask for by an option.
"""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from demur.core.arrays import Array
from demur.core.io.files import table_of
from demur.core.io.tables import ROW, Request, as_text
from demur.core.show.numbers import first_names
from demur.errors import DataError, DemurError, UsageError
from demur.importers.reading import read_table
from demur.understanding.noise import (
    NoiseChannel,
    Recognition,
    WordChannel,
    checked_ids,
    generator,
)
from demur.understanding.tokens import words

SAMPLES = 16_000
"""Samples a second that the recogniser wants."""
_LOUDEST = 32_767
_VOICE = "en-us"


def available() -> bool:
    """Whether the program that speaks and the package that recognises are both installed."""
    return shutil.which("espeak-ng") is not None and find_spec("pocketsphinx") is not None


@dataclass(frozen=True, kw_only=True)
class SpeechChannel:
    """Texts spoken by espeak-ng in white noise, and recognised by pocketsphinx.

    `snr_db` is how many decibels the speech is above the noise: 30 is a quiet room, at 0 both are equally loud. The
    noise of an utterance depends on the seed and its id (without ids, its text) only.
    """

    snr_db: float
    seed: int = 0

    caution = ""

    def __post_init__(self) -> None:
        if not available():
            raise UsageError(
                "speaking needs espeak-ng (apt-get install espeak-ng), and recognising needs pocketsphinx "
                "(pip install 'demur[speech]')"
            )

    @property
    def description(self) -> str:
        """What an experiment calls it."""
        return f"speech at {self.snr_db:g} dB"

    def recognise(self, texts: Sequence[str], ids: Sequence[Hashable] | None = None) -> Recognition:
        """What is recognised of each text when it is spoken in noise; "" where nothing is."""
        ids = checked_ids(texts, ids)
        # not an import: where it is not installed there are no types of it either
        decoder = import_module("pocketsphinx").Decoder(samprate=float(SAMPLES), cmn="batch", loglevel="FATAL")
        found = [
            _decoded(decoder, noisy(spoken(text), self.snr_db, generator(self.seed, name, "speech")))
            if words(text)
            else ""
            for text, name in zip(texts, ids, strict=True)
        ]
        return Recognition(tuple(ids), [" ".join(words(text)) for text in texts], found)


def spoken(text: str) -> Array:
    """The text as sound, 16,000 samples a second from -1 to 1."""
    # what is read from the input is never taken for an option
    command = ["espeak-ng", "-v", _VOICE, "--stdin", "--stdout"]
    done = subprocess.run(command, input=text.encode("utf-8", "replace"), capture_output=True, check=False)
    if done.returncode:
        raise DemurError(f'espeak-ng could not say "{text}": {done.stderr.decode(errors="replace").strip()}')
    return samples_of(done.stdout)


def samples_of(wave: bytes) -> Array:
    """The samples of a WAVE file of 16 bits and one channel, brought to 16,000 a second.

    The lengths in its header are not trusted: a program that writes as it speaks does not know them yet.
    """
    start = wave.find(b"data")
    if wave[:4] != b"RIFF" or start < 0:
        raise DemurError("espeak-ng gave no WAVE file")
    per_second = int.from_bytes(wave[24:28], "little")
    raw = wave[start + 8 :]
    sound: Array = np.frombuffer(raw[: len(raw) // 2 * 2], dtype="<i2") / (_LOUDEST + 1)
    if per_second != SAMPLES:
        from scipy.signal import resample_poly

        common = np.gcd(SAMPLES, per_second)
        sound = resample_poly(sound, SAMPLES // common, per_second // common)
    return sound


def noisy(sound: Array, snr_db: float, rng: np.random.Generator) -> Array:
    """The sound with white noise, so many decibels below it on average."""
    power = float(np.mean(sound**2)) if sound.size else 0.0
    loudness = math.sqrt(power / 10 ** (snr_db / 10))
    return sound + loudness * rng.standard_normal(sound.size)


def _decoded(decoder: Any, sound: Array) -> str:
    loud = max(1.0, float(np.abs(sound).max(initial=0.0)))
    raw = (sound / loud * _LOUDEST).astype("<i2").tobytes()
    decoder.reinit_feat()  # without it the result depends on what came before
    decoder.start_utt()
    decoder.process_raw(raw, no_search=False, full_utt=True)
    decoder.end_utt()
    best = decoder.hyp()
    return "" if best is None else " ".join(words(best.hypstr))


@dataclass(frozen=True)
class RecordedChannel:
    """What a recogniser wrote for questions at another time, by their ids."""

    texts: Mapping[Hashable, str]

    description = "a recorded recogniser"
    caution = ""
    snr_db = None

    def recognise(self, texts: Sequence[str], ids: Sequence[Hashable] | None = None) -> Recognition:
        """What was written for each id; one that was not recorded is refused."""
        ids = checked_ids(texts, ids)
        lost = [name for name in ids if name not in self.texts]
        if lost:
            raise UsageError(f"nothing is recorded for {first_names([str(name) for name in lost], 3)}")
        said = [" ".join(words(text)) for text in texts]
        return Recognition(tuple(ids), said, [" ".join(words(self.texts[name])) for name in ids])


def read_recorded(data: Any) -> RecordedChannel:
    """The channel of a table with `id` and `heard`: a file, a frame or rows."""
    frame = read_table(data) if isinstance(data, str | Path) else table_of(data, Request()).frame
    missing = [name for name in ("id", "heard") if name not in frame.columns]
    if missing:
        rule = f"a table of what was recognised has id and heard; there is no {' and no '.join(missing)}"
        raise DataError(rule, fix=f"columns there: {', '.join(name for name in frame.columns if name != ROW)}")
    pairs = zip(as_text(frame["id"]), as_text(frame["heard"]).fill_null(""), strict=True)
    return RecordedChannel(dict(pairs))


CHANNELS: dict[str, Callable[[Sequence[str], float, int], NoiseChannel]] = {
    "speech": lambda _, snr_db, seed: SpeechChannel(snr_db=snr_db, seed=seed),
    "wer": lambda vocabulary, wer, seed: WordChannel(vocabulary, wer=wer, seed=seed),
}
"""The channel for each option of the experiments on understanding, made of the known words, its value and the seed."""


def channel_of(vocabulary: Sequence[str], seed: int, **options: float | None) -> NoiseChannel | None:
    """The channel of the first option that is given, in the order of `CHANNELS`; None where there is no noise."""
    for name, make in CHANNELS.items():
        value = options.get(name)
        if value is not None and (name != "wer" or value > 0):
            return make(vocabulary, value, seed)
    return None
