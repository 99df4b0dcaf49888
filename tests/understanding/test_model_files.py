import hashlib
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from demur import __version__
from demur.errors import DataError, UsageError
from demur.understanding.relevance import (
    FORMAT,
    LAYOUT,
    SCORINGS,
    RelevanceClassifier,
    Scoring,
    answered,
    load_model,
    save_model,
)
from demur.understanding.tokens import available

TEXTS = ["when do you open", "who built the ship", "who sailed the ship", "", "when is “café” time"]
LABELS = ["hours", "builder", "sailor", "none", "hours"]
ANSWERS = {"hours": "We open at nine – always.", "builder": "A man of Bath built it."}
ASKED = [*TEXTS, "open the ship", "zebra"]


def learnt(**parameters: Any) -> RelevanceClassifier:
    return RelevanceClassifier(**parameters).fit(TEXTS, LABELS, ANSWERS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(learnt(), tmp_path / "guide")
    return tmp_path / "guide"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("tokens", ["words", *(["mixed", "words+phones3"] if available() else [])])
@pytest.mark.parametrize("answers", [None, ANSWERS])
def test_a_model_answers_as_before_to_the_last_bit(
    tokens: str, scoring: Scoring, answers: dict[str, str] | None, tmp_path: Path
) -> None:
    model = RelevanceClassifier(tokens=tokens, scoring=scoring, threshold=0.4, question_weight=0.2)
    model.fit(TEXTS, LABELS, answers)
    save_model(model, tmp_path / "guide")
    again = load_model(tmp_path / "guide")
    assert again.get_params() == model.get_params()
    assert again.decision_function(ASKED).tolist() == model.decision_function(ASKED).tolist()
    assert again.left_out().tolist() == model.left_out().tolist()
    assert repr(answered(again, ASKED)) == repr(answered(model, ASKED))


@pytest.mark.parametrize("labels", [["a", "b", "1", "d", "é"], [3, 1, 2, 10, 3], [0.5, 1.5, 0.5, 2.0, 1.5]])
def test_labels_keep_their_type(labels: list[Any], tmp_path: Path) -> None:
    model = RelevanceClassifier().fit(TEXTS, labels, dict.fromkeys(labels, "so"))
    save_model(model, tmp_path / "guide")
    again = load_model(tmp_path / "guide")
    assert again.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()
    assert again.classes_.dtype == model.classes_.dtype
    assert again.answers_ == model.answers_


def test_parameters_out_of_a_search_are_written_as_plain_numbers(tmp_path: Path) -> None:
    model = learnt(question_weight=np.float32(0.25), sharpness=np.int64(1))
    save_model(model, tmp_path / "guide")
    assert load_model(tmp_path / "guide").predict_proba(ASKED) == pytest.approx(model.predict_proba(ASKED))


def test_the_folder_can_be_read_by_people(folder: Path) -> None:
    assert names(folder) == ["arrays.npz", "model.json", "vocabularies.json"]
    told = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    assert (told["format"], told["layout"], told["demur"]) == (FORMAT, LAYOUT, __version__)
    assert told["parameters"] == RelevanceClassifier().get_params()
    assert (told["pairs"], told["classes"]) == (5, ["builder", "hours", "none", "sailor"])
    assert "We open at nine – always." in (folder / "model.json").read_text(encoding="utf-8")
    assert "café" in json.loads((folder / "vocabularies.json").read_text(encoding="utf-8"))["words"]


def test_nothing_in_the_folder_is_a_pickle(folder: Path) -> None:
    with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
        kinds = {arrays[name].dtype.kind for name in arrays.files}
    assert kinds <= set("iuf")


def test_a_model_that_has_learnt_nothing_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has learnt nothing yet"):
        save_model(RelevanceClassifier(), tmp_path / "guide")
    assert names(tmp_path) == []


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    save_model(learnt(), tmp_path / "a" / "b" / "guide")
    assert names(tmp_path / "a" / "b") == ["guide"]


def test_an_older_model_is_replaced_whole(folder: Path) -> None:
    save_model(RelevanceClassifier().fit(["who"], ["a"]), folder)
    assert load_model(folder).classes_.tolist() == ["a"]
    assert names(folder.parent) == ["guide"]


def test_what_lies_beside_a_model_is_not_deleted(folder: Path) -> None:
    (folder / "own.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"holds more than a model \(own.txt\)"):
        save_model(learnt(), folder)
    assert (folder / "own.txt").read_text() == "mine"


def test_an_empty_folder_may_take_a_model(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    save_model(learnt(), tmp_path / "made")
    assert load_model(tmp_path / "made").predict(["open"]).tolist()


def test_metadata_of_another_model_is_refused(folder: Path) -> None:
    told = json.loads((folder / "model.json").read_text())
    told["classes"] = told["classes"][:1]
    (folder / "model.json").write_text(json.dumps(told))
    with pytest.raises(DataError, match=r"model\.json: answers are not those of the classes \(train the model again\)"):
        load_model(folder)


def test_a_link_to_a_model_stays_a_link(folder: Path) -> None:
    link = folder.with_name("latest")
    link.symlink_to(folder, target_is_directory=True)
    save_model(RelevanceClassifier().fit(["who"], ["a"]), link)
    assert link.is_symlink()
    assert load_model(folder).classes_.tolist() == ["a"]


def foreign_folder(place: Path) -> None:
    place.mkdir()
    (place / "thesis.tex").write_text("years of work", encoding="utf-8")


def foreign_file(place: Path) -> None:
    place.write_text("years of work", encoding="utf-8")


def other_model(place: Path) -> None:
    place.mkdir()
    (place / "model.json").write_text('["not", "ours"]', encoding="utf-8")


def no_json(place: Path) -> None:
    place.mkdir()
    (place / "model.json").write_bytes(b"\xff\xfe{")


@pytest.mark.parametrize("foreign", [foreign_folder, foreign_file, other_model, no_json])
def test_what_is_no_model_is_not_overwritten(foreign: Callable[[Path], None], tmp_path: Path) -> None:
    place = tmp_path / "guide"
    foreign(place)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="exists and is no model of demur; name a new folder"):
        save_model(learnt(), place)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("failing", [1, 2])
def test_where_the_new_model_cannot_be_put_in_place_the_old_one_stays(
    failing: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, calls = os.replace, []

    def replace(source: Path, target: Path) -> None:
        calls.append(target)
        if len(calls) == failing:
            raise OSError(28, "No space left on device")
        really(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(UsageError, match=r"guide cannot be written: No space left on device"):
        save_model(RelevanceClassifier().fit(["who"], ["a"]), folder)
    assert names(folder.parent) == ["guide"]
    assert load_model(folder).predict(TEXTS).tolist() == learnt().predict(TEXTS).tolist()


@pytest.mark.parametrize("stopped", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_where_writing_is_cut_short_the_old_model_stays_and_no_rest_is_left(
    stopped: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise stopped

    monkeypatch.setattr(np, "savez_compressed", stop)
    with pytest.raises((UsageError, KeyboardInterrupt), match=r"No space left|^$"):
        save_model(RelevanceClassifier().fit(["who"], ["a"]), folder)
    assert names(folder.parent) == ["guide"]
    assert load_model(folder).predict(TEXTS).tolist() == learnt().predict(TEXTS).tolist()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: no such folder \(demur understand train writes a model"):
        load_model(tmp_path / "nowhere")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "guide").write_text("so", encoding="utf-8")
    with pytest.raises(DataError, match="guide: no such folder"):
        load_model(tmp_path / "guide")


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no model\.json, so it is no model of demur"):
        load_model(tmp_path)


@pytest.mark.parametrize("name", ["arrays.npz", "vocabularies.json"])
def test_a_missing_part_is_named(name: str, folder: Path) -> None:
    (folder / name).unlink()
    with pytest.raises(DataError, match=rf"guide: is incomplete: {name} is missing \(train the model again\)"):
        load_model(folder)


@pytest.mark.parametrize("name", ["arrays.npz", "vocabularies.json"])
@pytest.mark.parametrize("damage", [lambda held: held[:-20], lambda held: held + b" ", lambda _: b""])
def test_a_damaged_part_is_named(name: str, damage: Callable[[bytes], bytes], folder: Path) -> None:
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    with pytest.raises(DataError, match=f"{name}: is damaged or of another model"):
        load_model(folder)


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (b"", "Input data was truncated"),
        (b'{"format": ', "Input data was truncated"),
        (b"\xff\xfe", "JSON is malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"format": "another"}', r"Invalid enum value 'another' - at `\$\.format`"),
        (b"[" * 100_000, "Expected `object`"),
        (b'{"x": ' + b"[" * 100_000, "it is nested too deeply|Input data was truncated"),  # Python 3.14 nests deeper
    ],
)
def test_metadata_that_cannot_be_understood_is_refused(held: bytes, words: str, folder: Path) -> None:
    (folder / "model.json").write_bytes(held)
    with pytest.raises(DataError, match=rf"model\.json: does not have the form of a model of demur: {words}"):
        load_model(folder)


def changed(folder: Path, **values: Any) -> None:
    told = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    told.update(values)
    kept = {name: value for name, value in told.items() if value is not ...}
    (folder / "model.json").write_text(json.dumps(kept), encoding="utf-8")


def test_another_layout_is_refused_with_the_version_that_wrote_it(folder: Path) -> None:
    changed(folder, layout=99, demur="7.0")
    with pytest.raises(DataError, match=rf"has layout 99, written by demur 7\.0; .* reads layout {LAYOUT} \(train it"):
        load_model(folder)


def test_metadata_that_lacks_something_says_what(folder: Path) -> None:
    changed(folder, classes=..., crowding=...)
    with pytest.raises(DataError, match=r"model\.json: .* missing required field `crowding`"):
        load_model(folder)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"parameters": {"loudness": 3}}, r"unknown field `loudness` - at `\$\.parameters`"),
        ({"parameters": {"question_weight": "much"}}, r"got `str` - at `\$\.parameters\.question_weight`"),
        ({"parameters": {"sharpness": 1e300}}, "sharpness is a number above 0 and at most 1,000,000"),
        ({"token_parts": ["phones1"]}, "token_parts are not those of words"),
        ({"crowding": {}}, "lacks crowding, or a vocabulary"),
        ({"crowding": {"words": 0}}, r"Expected `float` > 0.0 - at `\$\.crowding"),
        ({"answers": ["only one"]}, "answers are not those of the classes"),
        ({"answers": [1, 2, 3, 4]}, r"Expected `str`, got `int` - at `\$\.answers\[0\]`"),
        ({"pairs": 2**40}, r"Expected `int` <= .* - at `\$\.pairs`"),
        ({"pairs": 2**24}, r"label_of\.npy must have 16,777,216 numbers"),
        ({"classes": ["hours"] * 4}, "classes must be in order, each once"),
        ({"classes": ["b", "a", "c", "d"]}, "classes must be in order, each once"),
        ({"classes": ["a", "b", "c", 4]}, "classes must be all text or all numbers"),
        ({"classes": ["a", "b", "c", "d\0"]}, "classes must be in order, each once"),
        ({"classes": [1, 2, 3, 10**30]}, r"at `\$\.classes\[3\]`"),
        ({"classes": []}, r"at `\$\.classes`"),
    ],
)
def test_metadata_that_does_not_go_with_the_rest_is_refused(values: dict[str, Any], said: str, folder: Path) -> None:
    changed(folder, **values)
    with pytest.raises(DataError, match=rf"(model\.json|arrays\.npz).*({said})"):
        load_model(folder)


def test_a_part_whose_digest_is_not_told_is_refused(folder: Path) -> None:
    changed(folder, digests={})
    with pytest.raises(DataError, match="is damaged or of another model"):
        load_model(folder)


def test_parameters_written_by_hand_are_checked(folder: Path) -> None:
    changed(folder, parameters={"question_weight": 2})
    with pytest.raises(DataError, match=r"model\.json: question_weight is a number above 0 and below 1; got 2"):
        load_model(folder)


def test_a_threshold_may_be_written_by_hand(folder: Path) -> None:
    changed(folder, parameters={"threshold": 0.999})
    assert not answered(load_model(folder), ["the"])[0].returned


def test_arrays_that_would_run_code_are_refused(folder: Path) -> None:
    with (folder / "arrays.npz").open("wb") as file:
        np.savez(file, label_of=np.array([print], dtype=object))
    digest = hashlib.blake2b((folder / "arrays.npz").read_bytes(), digest_size=16).hexdigest()
    told = json.loads((folder / "model.json").read_text(encoding="utf-8"))["digests"]
    changed(folder, digests={**told, "arrays.npz": digest})
    assert zipfile.is_zipfile(folder / "arrays.npz")
    with pytest.raises(DataError, match=r"arrays\.npz: label_of\.npy (must be numbers|unpacks to)"):
        load_model(folder)
