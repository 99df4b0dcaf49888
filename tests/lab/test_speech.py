import io
import wave
from types import SimpleNamespace

import numpy as np
import pytest

from demur.errors import DemurError, UsageError
from demur.lab import noise
from demur.lab.noise import SAMPLES, SpeechChannel, channel_of, noisy, samples_of
from demur.understanding.noise import generator

needs_both = pytest.mark.skipif(not noise.available(), reason="espeak-ng and pocketsphinx are not both installed")


def wave_of(samples, per_second):
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(per_second)
        made.writeframes(np.asarray(samples, dtype="<i2").tobytes())
    return file.getvalue()


def test_samples_are_read_as_shares_of_the_loudest():
    assert samples_of(wave_of([0, 16384, -32768], SAMPLES)).tolist() == [0, 0.5, -1]


def test_the_lengths_of_the_header_are_not_trusted():
    streamed = bytearray(wave_of([0, 16384], SAMPLES))
    streamed[40:44] = b"\xff\xff\xff\x7f"
    assert samples_of(bytes(streamed)).tolist() == [0, 0.5]


def test_a_tone_keeps_its_pitch_when_it_is_resampled():
    per_second = 22_050
    tone = 20_000 * np.sin(2 * np.pi * 440 * np.arange(per_second) / per_second)
    found = samples_of(wave_of(tone, per_second))
    assert found.size == SAMPLES
    assert np.argmax(np.abs(np.fft.rfft(found))) == 440


def test_what_is_no_wave_file_is_refused():
    with pytest.raises(DemurError, match="no WAVE file"):
        samples_of(b"hello")


@pytest.mark.parametrize("snr_db", [0.0, 10.0, 20.0])
def test_noise_is_as_many_decibels_below_the_speech(snr_db):
    tone = np.sin(np.arange(50_000) / 10)
    noise = noisy(tone, snr_db, np.random.default_rng(0)) - tone
    assert 10 * np.log10(np.mean(tone**2) / np.mean(noise**2)) == pytest.approx(snr_db, abs=0.1)


def test_silence_stays_silent():
    assert noisy(np.zeros(3), 0.0, generator(0, "u1")).tolist() == [0, 0, 0]
    assert noisy(np.zeros(0), 0.0, generator(0, "u1")).size == 0


def test_what_to_install_is_said(monkeypatch):
    monkeypatch.setattr(noise, "available", lambda: False)
    with pytest.raises(UsageError, match=r"apt-get install espeak-ng.*pip install 'demur\[speech\]'"):
        SpeechChannel(snr_db=20)


class Parrot:
    """A decoder that writes how many samples there were."""

    def reinit_feat(self):
        self.heard = None

    def start_utt(self):
        self.heard = 0

    def process_raw(self, raw, no_search, full_utt):
        self.heard = len(raw) // 2

    def end_utt(self):
        self.hypstr = f"Samples {self.heard}"

    def hyp(self):
        return self if self.heard else None


@pytest.fixture
def parrot(monkeypatch):
    monkeypatch.setattr(noise, "available", lambda: True)
    monkeypatch.setattr(noise, "import_module", lambda _: SimpleNamespace(Decoder=lambda **_: Parrot()))
    monkeypatch.setattr(noise, "spoken", lambda text: np.ones(len(text) if text != "silence" else 0))
    return SpeechChannel(snr_db=20)


def test_texts_without_words_are_not_spoken_and_silence_gives_the_empty_text(parrot):
    found = parrot.recognise(["Hello", "", "?", "silence"])
    assert (found.texts, found.said) == (["samples 5", "", "", ""], ["hello", "", "", "silence"])
    assert found.wer == 3 / 2
    with pytest.raises(UsageError, match="got 0 for 1"):
        parrot.recognise(["hello"], [])


@pytest.mark.usefixtures("parrot")
def test_an_experiment_has_the_channel_of_its_options():
    known = ["a book", "a flight"]
    assert channel_of(known, 3, wer=0.2, speech=20.0) == SpeechChannel(snr_db=20.0, seed=3)
    words = channel_of(known, 3, wer=0.2, speech=None)
    assert (words.wer, words.seed, words.vocabulary, words.snr_db) == (0.2, 3, ("a", "book", "flight"), None)
    assert channel_of(known, 3, wer=0.0, speech=None) is None


@needs_both
def test_a_spoken_text_is_recognised_in_part_whatever_was_said_before():
    texts = ["what are your opening hours at the weekend", "is there a group discount"]
    channel = SpeechChannel(snr_db=30)
    found = channel.recognise(texts).texts
    assert "opening hours" in found[0]
    assert channel.recognise(texts[::-1]).texts[::-1] == found
