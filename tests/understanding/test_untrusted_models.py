"""Folders of models that somebody else made: each loads as a model that works, or is refused in a sentence."""

import hashlib
import io
import json
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DemurError
from demur.understanding import relevance
from demur.understanding.relevance import RelevanceClassifier, load_model, save_model
from mutated import changed_bytes, changed_json, changed_zip, zipped

TEXTS = ["when do you open", "who built the ship the ship", "", "who sailed"]
LABELS = ["hours", "builder", "none", "sailor"]
ASKED = [*TEXTS, "open the ship", "zebra"]
NAMES = ("arrays.npz", "vocabularies.json", "model.json")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "guide"


@pytest.fixture(scope="module")
def sound(place):
    """The files of a sound model."""
    save_model(RelevanceClassifier(scoring="kl").fit(TEXTS, LABELS, {"hours": "at nine"}), place)
    return {name: (place / name).read_bytes() for name in NAMES}


def written(place, files):
    """A folder of these files whose digests are theirs: digests prove nothing about who made it."""
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (place / name).write_bytes(content)
    with suppress(ValueError):  # metadata that are no JSON have no digests to set right
        document = json.loads(files["model.json"])
        if isinstance(document, dict) and isinstance(document.get("digests"), dict):
            for name in document["digests"].keys() & set(NAMES):
                document["digests"][name] = hashlib.blake2b(files[name], digest_size=16).hexdigest()
            (place / "model.json").write_text(json.dumps(document))
    return place


def works_or_is_refused(folder):
    """Whether the folder holds a model that answers; one that is refused says which folder it is."""
    said = ""
    try:
        model = load_model(folder)
    except DemurError as fault:
        said = str(fault)
    assert len(said) < 1000
    if said:
        assert str(folder) in said
        return False
    posterior = model.predict_proba(ASKED)
    assert np.allclose(posterior.sum(axis=1), 1)
    assert np.isfinite(model.scores(posterior)).all()
    assert np.allclose(model.left_out().sum(axis=1), 1)
    assert len(model.known(ASKED)) == len(model.predict(ASKED)) == len(ASKED)
    return True


def test_the_sound_one_works(place, sound):
    assert works_or_is_refused(written(place, sound))


@given(st.data())
def test_any_change_to_a_file_gives_a_model_that_works_or_a_fault(place, sound, data):
    name = data.draw(st.sampled_from(NAMES))
    if name == "arrays.npz":
        content = data.draw(changed_zip(sound[name]))
    else:
        content = data.draw(st.one_of(changed_json(json.loads(sound[name])), changed_bytes(sound[name])))
    works_or_is_refused(written(place, {**sound, name: content}))


CRAFTED = {
    "words.indptr": [
        *([0, -5, 2, 3, 11], [0, 2**40, 2**40, 2**40, 2**40], [5, 4, 3, 2, 1], [0, 4, 9, 9, 2**62], [0, 0, 0, 0, 0]),
        *([0, 4, 9, 9, 12], [0, 4, 9, 9, 10], [0, 4], [], [-(2**63)] * 5, [0, 4, 8, 8, 10, 10], [0.5] * 5),
    ],
    "words.indices": [[-1] * 10, [2**40] * 10, [9] * 10, [0] * 10, [-(2**31)] * 10, list(range(10))[::-1], []],
    "words.data": [[np.nan] * 10, [np.inf] * 10, [0.0] * 10, [-1.0] * 10, [0.5] * 10, [1e300] * 10, [1.0] * 9],
    "words.lengths": [[0.0] * 4, [np.nan] * 4, [-1.0] * 4, [1e308] * 4, [1.0] * 5],
    "label_of": [[-1] * 4, [4] * 4, [2**62] * 4, [0] * 3, [[0] * 4], [0.5] * 4],
}
CHILD = """
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path
from understanding.test_untrusted_models import works_or_is_refused
for folder in sorted(Path(sys.argv[1]).iterdir()):
    print(folder.name, works_or_is_refused(folder), flush=True)
"""


def test_no_crafted_array_reaches_memory_that_is_not_its_own(sound, tmp_path):
    with np.load(io.BytesIO(sound["arrays.npz"])) as stored:
        arrays = dict(stored)
    assert len(arrays["words.data"]) == 10
    crafted = [{**arrays, name: np.array(value)} for name, values in CRAFTED.items() for value in values]
    crafted += [{name: array for name, array in arrays.items() if name != left} for left in arrays]
    for number, one in enumerate(crafted):
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **one)
        written(tmp_path / f"{number:03}", {**sound, "arrays.npz": buffer.getvalue()})
    tests = Path(__file__).parents[1]
    path = [str(tests), str(Path(relevance.__file__).parents[2])]
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{CHILD}", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["False"] * len(crafted)


@pytest.mark.parametrize("shape", ["(10000000000000,)", "(4, 1)", "()", "(-1,)", "(((((4,)))),)", "(4,)" + " " * 70000])
def test_an_array_whose_header_lies_is_refused(place, sound, shape):
    text = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".encode() + b"\n"
    array = b"\x93NUMPY\x01\x00" + (len(text) % 65536).to_bytes(2, "little") + text + bytes(32)
    assert not works_or_is_refused(written(place, {**sound, "arrays.npz": zipped({"label_of.npy": array})}))


def test_an_archive_that_would_fill_memory_is_not_unpacked(place, sound):
    zeros = zipped({f"{name}.npy": bytes(10**8) for name in ("label_of", "words.indptr")})
    assert len(zeros) < 10**6
    folder = written(place, {**sound, "arrays.npz": zeros})
    tracemalloc.start()
    try:
        assert not works_or_is_refused(folder)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("limit", "said"), [("MOST_CELLS", "are too long"), ("MOST_ENTRIES", "must rise from 0")])
def test_sizes_have_limits(place, sound, monkeypatch, limit, said):
    monkeypatch.setattr(relevance, limit, 5)
    with pytest.raises(DemurError, match=said):
        load_model(written(place, sound))
