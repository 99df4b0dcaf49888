import io
import wave

import numpy as np
import pytest

from demur.errors import DemurError, UsageError
from demur.lab import noise
from demur.lab.noise import HEARD_AT, noisy, said_and_heard, samples_of
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
    assert samples_of(wave_of([0, 16384, -32768], HEARD_AT)).tolist() == [0, 0.5, -1]


def test_the_lengths_of_the_header_are_not_trusted():
    streamed = bytearray(wave_of([0, 16384], HEARD_AT))
    streamed[40:44] = b"\xff\xff\xff\x7f"
    assert samples_of(bytes(streamed)).tolist() == [0, 0.5]


def test_a_tone_keeps_its_pitch_when_it_is_resampled():
    per_second = 22_050
    tone = 20_000 * np.sin(2 * np.pi * 440 * np.arange(per_second) / per_second)
    found = samples_of(wave_of(tone, per_second))
    assert found.size == HEARD_AT
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
    with pytest.raises(UsageError, match=r"apt-get install espeak-ng.*pip install pocketsphinx"):
        said_and_heard(["hello"], snr_db=20)


def test_texts_and_ids_go_together(monkeypatch):
    monkeypatch.setattr(noise, "available", lambda: True)
    with pytest.raises(UsageError, match="a list of texts, and an id for each"):
        said_and_heard(["hello"], snr_db=20, ids=[])


class Parrot:
    """A listener that hears how many samples there were."""

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


def test_texts_without_words_are_not_spoken(monkeypatch):
    monkeypatch.setattr(noise, "available", lambda: True)
    monkeypatch.setattr(noise, "_listener", Parrot)
    monkeypatch.setattr(noise, "spoken", lambda text: np.ones(len(text)))
    assert said_and_heard(["hello", "", "?"], snr_db=20) == ["samples 5", "", ""]


def test_a_listener_that_hears_nothing_gives_the_empty_text(monkeypatch):
    monkeypatch.setattr(noise, "available", lambda: True)
    monkeypatch.setattr(noise, "_listener", Parrot)
    monkeypatch.setattr(noise, "spoken", lambda _: np.zeros(0))
    assert said_and_heard(["hello"], snr_db=20) == [""]


@needs_both
def test_a_spoken_text_is_heard_in_part_whatever_was_said_before():
    texts = ["what are your opening hours at the weekend", "is there a group discount"]
    heard = said_and_heard(texts, snr_db=30)
    assert "opening hours" in heard[0]
    assert said_and_heard(texts[::-1], snr_db=30)[::-1] == heard
