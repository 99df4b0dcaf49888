"""Speech for real: texts are spoken by espeak-ng, noise is added, and pocketsphinx writes down what it hears.

An experiment for where both are installed: one voice, white noise, and a recogniser of American English with a
vocabulary of its own. It makes errors that no tokenizer was built for, unlike those of `channel`; and many of them:
on 26 of the bundled questions two words of three are wrong before there is any noise.
"""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Hashable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import DemurError, UsageError
from demur.systems.channel import generator
from demur.systems.tokens import words

Array = NDArray[np.float64]

HEARD_AT = 16_000
"""Samples a second that the recogniser wants."""
_LOUDEST = 32_767
_VOICE = "en-us"


def available() -> bool:
    """Whether the program that speaks and the package that listens are both installed."""
    return shutil.which("espeak-ng") is not None and find_spec("pocketsphinx") is not None


def said_and_heard(
    texts: Sequence[str], *, snr_db: float, seed: int = 0, ids: Sequence[Hashable] | None = None
) -> list[str]:
    """What is heard of each text when it is spoken in white noise; "" where nothing is.

    `snr_db` is how many decibels the speech is above the noise: 30 is a quiet room, at 0 both are equally loud. The
    noise of an utterance depends on the seed and its id (without ids, its text) only.
    """
    if not available():
        raise UsageError(
            "speaking needs espeak-ng (apt-get install espeak-ng), and listening needs pocketsphinx "
            "(pip install pocketsphinx)"
        )
    ids = texts if ids is None else ids
    if isinstance(texts, str) or len(ids) != len(texts):
        raise UsageError("there must be a list of texts, and an id for each of them")
    listener = _listener()
    return [
        _understood(listener, noisy(spoken(text), snr_db, generator(seed, name, "speech"))) if words(text) else ""
        for text, name in zip(texts, ids, strict=True)
    ]


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
    sound = wave[start + 8 :]
    return _resampled(np.frombuffer(sound[: len(sound) // 2 * 2], dtype="<i2") / (_LOUDEST + 1), per_second)


def noisy(sound: Array, snr_db: float, rng: np.random.Generator) -> Array:
    """The sound with white noise, so many decibels below it on average."""
    power = float(np.mean(sound**2)) if sound.size else 0.0
    loudness = math.sqrt(power / 10 ** (snr_db / 10))
    return sound + loudness * rng.standard_normal(sound.size)


def _resampled(sound: Array, per_second: int) -> Array:
    if per_second == HEARD_AT:
        return sound
    from scipy.signal import resample_poly

    common = np.gcd(HEARD_AT, per_second)
    found: Array = resample_poly(sound, HEARD_AT // common, per_second // common)
    return found


def _listener() -> Any:
    # not an import: where it is not installed there are no types of it either
    return import_module("pocketsphinx").Decoder(samprate=float(HEARD_AT), cmn="batch", loglevel="FATAL")


def _understood(listener: Any, sound: Array) -> str:
    loud = max(1.0, float(np.abs(sound).max(initial=0.0)))
    raw = (sound / loud * _LOUDEST).astype("<i2").tobytes()
    listener.reinit_feat()  # else what is heard depends on what was heard before
    listener.start_utt()
    listener.process_raw(raw, no_search=False, full_utt=True)
    listener.end_utt()
    best = listener.hyp()
    return "" if best is None else " ".join(words(best.hypstr))
