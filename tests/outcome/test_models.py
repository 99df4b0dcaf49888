"""Outcome models as files: what is kept, what is read back, and what is refused."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.io.untrusted import MOST_JSON
from demur.errors import DataError, DemurError
from demur.outcome.features import design
from demur.outcome.fitting import Procedure, fit_design
from demur.outcome.prediction import FORMAT, OutcomeModel, model_from_formula, model_of, predict, read_model
from demur.outcome.table import dialogues
from demur.returns.table import Reading, responses
from mutated import changed_bytes, changed_json
from reference.outcome import CULPRIT, study

LOG = Reading(out_of_scope=(), missing_confidence="lowest")
MINIMAL = {"format": FORMAT, "version": 1, "outcome": "gain", "coefficients": {"(Intercept)": 0.5, "recall.a": 0.25}}


@pytest.fixture(scope="module")
def made():
    turns, outcomes = study(24, turns=40)
    return design(dialogues(outcomes), responses(turns, reading=LOG), features="conf+scores.f")


@pytest.fixture(scope="module")
def model(made):
    return fit_design(made, how=Procedure(replicates=0)).model


def saved(path: Path, document) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_a_model_reads_back_as_it_was_written(model, tmp_path: Path):
    path = tmp_path / "m.json"
    path.write_bytes(model.to_json())
    assert read_model(path) == model
    assert read_model(str(path)).to_json() == path.read_bytes()


def test_the_file_is_for_people_to_read(model):
    text = model.to_json().decode()
    assert text.startswith('{\n  "format": "demur outcome model",\n  "version": 1,')
    assert text.endswith("}\n")
    document = json.loads(text)
    assert document["made_by"].startswith("demur ")
    assert document["direction"] == "both"
    assert set(document["validation"]) == {"in_sample", "loo", "nested"}
    assert document["labels"] == ["contradictory", "correct", "incomplete"]


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.floats(-1e100, 1e100), max_size=4), st.floats(-1e100, 1e100))
def test_any_formula_survives_the_file(weights, intercept):
    one = model_from_formula("gain", {"(Intercept)": intercept, **weights})
    assert msgspec.json.decode(one.to_json(), type=OutcomeModel) == one


def test_coefficients_and_covariance_are_those_of_the_textbook(made):
    terms = (CULPRIT, "fmeasure.correct")
    found = model_of(made, terms, direction="both", validation={})
    x = np.column_stack([np.ones(made.y.size), *(made.x[:, made.names.index(name)] for name in terms)])
    inverse = np.linalg.inv(x.T @ x)
    weights = inverse @ x.T @ made.y
    variance = np.square(made.y - x @ weights).sum() / (made.y.size - 3)
    assert list(found.coefficients) == ["(Intercept)", *terms]
    assert list(found.coefficients.values()) == pytest.approx(weights.tolist())
    assert np.array(found.covariance) == pytest.approx(variance * inverse)
    assert found.sigma == pytest.approx(np.sqrt(variance))
    assert found.mean_outcome == pytest.approx(made.y.mean())
    assert found.sd_outcome == pytest.approx(made.y.std(ddof=1))
    assert found.n == 24


def test_ranges_are_those_of_training_for_every_feature_not_only_the_terms(made, model):
    for name, column in zip(made.names, made.x.T, strict=True):
        assert model.ranges[name] == (column.min(), column.max())
    assert "precision.correct" in model.ranges
    assert "rejected" in model.ranges
    assert all(low <= high for low, high in model.ranges.values())


def test_confusions_asked_for_by_name_are_not_called_too_rare():
    turns, outcomes = study(24, turns=40)
    rare = "predicted-correct-actual-incomplete"
    made = design(dialogues(outcomes), responses(turns, reading=LOG), features=f"{rare}+{CULPRIT}", least=1000)
    found = model_of(made, (rare,), direction="both", validation={})
    assert set(found.frequent) == {rare, CULPRIT}
    assert found.rare_share is not None
    assert 0 < found.rare_share < 1


def test_a_formula_reads_as_in_a_paper():
    one = model_from_formula("gain", {"(Intercept)": 0.88, "conf": -0.68, "recall.correct": 0.28})
    assert one.formula() == "gain = 0.88 - 0.68 * conf + 0.28 * recall.correct"
    assert model_from_formula("gain", {"x": 2}).formula() == "gain = 0 + 2 * x"
    assert model_from_formula("gain", {"(Intercept)": -0.5}).formula() == "gain = -0.5"


def test_a_model_by_hand_needs_four_entries(tmp_path: Path):
    found = read_model(saved(tmp_path / "m.json", MINIMAL))
    assert found == model_from_formula("gain", MINIMAL["coefficients"])
    assert not found.digest
    assert found.terms == ("recall.a",)
    assert found.value({"recall.a": 0.5}) == 0.625


def test_a_model_without_terms_is_its_intercept():
    assert model_from_formula("gain", {"(Intercept)": 0.4}).value({}) == 0.4
    assert model_from_formula("gain", {}).value({}) == 0


EDITS = {
    "weight": lambda d: {**d, "coefficients": {**d["coefficients"], "(Intercept)": 0.9}},
    "n": lambda d: {**d, "n": 1000},
    "range": lambda d: {**d, "ranges": {**d["ranges"], CULPRIT: [0.0, 1.0]}},
    "entry left out": lambda d: {key: value for key, value in d.items() if key != "rare_share"},
    "digest": lambda d: {**d, "digest": "00"},
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_fitted_model_edited_by_hand_is_refused(model, tmp_path: Path, edit):
    path = saved(tmp_path / "m.json", edit(json.loads(model.to_json())))
    with pytest.raises(DataError, match=r"m\.json: the model was changed after it was made.*take out digest"):
        read_model(path)


def test_layout_and_order_of_entries_are_nobodys_business(model, tmp_path: Path):
    document = json.loads(model.to_json())
    turned = dict(reversed(document.items()))
    assert read_model(saved(tmp_path / "m.json", json.dumps(turned, indent=7))) == model


def test_an_edited_model_without_digest_covariance_and_ranges_is_a_formula(model, tmp_path: Path):
    document = json.loads(model.to_json())
    for name in ("digest", "covariance", "ranges"):
        del document[name]
    document["coefficients"]["(Intercept)"] = 1.0
    found = read_model(saved(tmp_path / "m.json", document))
    assert not found.digest
    assert found.coefficients["(Intercept)"] == 1


BROKEN = {
    "newer": ({**MINIMAL, "version": 2, "made_by": "demur 9.1"}, "of kind 2, made by demur 9.1; this is demur"),
    "newer, unsigned": ({**MINIMAL, "version": 7}, "of kind 7, made by a newer demur.*upgrade demur"),
    "not JSON": ("{", "does not have the form of an outcome model: Input data was truncated"),
    "empty": ("", "does not have the form of an outcome model: Input data was truncated"),
    "a list": ([1], "form of an outcome model: Expected `object`, got `array`"),
    "another format": ({**MINIMAL, "format": "grammar"}, "form of an outcome model: .*format"),
    "no format": ({"coefficients": {}}, "form of an outcome model: .*format"),
    "no coefficients": ({**MINIMAL, "coefficients": None}, "form of an outcome model.*coefficients"),
    "a word for a weight": ({**MINIMAL, "coefficients": {"x": "big"}}, "form of an outcome model.*coefficients"),
    "version in words": ({**MINIMAL, "version": "1"}, "form of an outcome model.*version"),
    "unknown entry": ({**MINIMAL, "weights": {}}, "form of an outcome model.*unknown field `weights`"),
    "unknown policy": ({**MINIMAL, "undefined": "guess"}, "form of an outcome model.*undefined"),
    "covariance": ({**MINIMAL, "covariance": [[1.0]]}, "the covariance must be 2 by 2, as there are coefficients"),
    "ragged": ({**MINIMAL, "covariance": [[1.0, 0.0], [0.0]]}, "the covariance must be 2 by 2"),
    "range": ({**MINIMAL, "ranges": {"recall.a": [1, 0]}}, "a range must go from the least to the greatest"),
    "a key twice": (
        json.dumps(MINIMAL).replace('"coefficients": {', '"coefficients": {"recall.a": 9.0, '),
        'has the key "recall.a" 2 times',
    ),
    "long range": ({**MINIMAL, "ranges": {"recall.a": [1, 2, 3]}}, "form of an outcome model"),
}


@pytest.mark.parametrize(("document", "said"), BROKEN.values(), ids=BROKEN)
def test_broken_files_are_refused_by_name(tmp_path: Path, document, said):
    path = saved(tmp_path / "m.json", document)
    with pytest.raises(DataError, match=f"(?s)m.json: .*{said}"):
        read_model(path)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"nowhere\.json cannot be read: No such file"):
        read_model(tmp_path / "nowhere.json")
    with pytest.raises(DataError, match="is no regular file"):
        read_model(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b'{"format": "\xff"}')
    with pytest.raises(DataError, match=r"bytes\.json: does not have the form of an outcome model"):
        read_model(tmp_path / "bytes.json")


@given(st.data())
def test_any_change_to_a_model_gives_one_that_works_or_a_fault(model, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "changed.json"
    if data.draw(st.booleans()):
        content = data.draw(changed_bytes(model.to_json()))
    else:
        content = data.draw(changed_json({**json.loads(model.to_json()), "digest": ""}))
    path.write_bytes(content)
    said = ""
    try:
        found = read_model(path)
        # whoever changes a model can give it another digest
        found = msgspec.structs.replace(found, digest="00")
        assert all(isinstance(line, str) for line in (found.formula(), *found.notes()))
        turns, _ = study(6, turns=8)
        result = predict(found, responses(turns, reading=LOG), extrapolate=True, unknown_labels="drop")
        assert result.to_dict()
    except DemurError as fault:
        said = str(fault)
    assert len(said) < 2000


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"x": ' + b"[" * 100_000, b" " * (MOST_JSON + 1)], ids=["deep", "deep inside", "long"]
)
def test_a_file_that_would_not_end_is_refused(tmp_path: Path, text):
    (tmp_path / "m.json").write_bytes(text)
    with pytest.raises(DataError, match=r"m\.json"):
        read_model(tmp_path / "m.json")
