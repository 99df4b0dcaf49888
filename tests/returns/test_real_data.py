"""Real logs, where they lie beside the project; everything they show is tested on made-up data as well."""

from pathlib import Path

import pytest

import demur

DATA = Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data beside the project")


@needs_data
def test_three_classifiers_of_clinc150_are_ordered_as_their_plot_shows() -> None:
    logs = [DATA / "clinc150" / f"pred_{name}.jsonl.gz" for name in ("tfidf_lr", "minilm_lr", "minilm_knn")]
    comparison = demur.compare(*logs, where=(("split", "test"),), replicates=300)
    verdicts = {(pair.a.removeprefix("pred_"), pair.b.removeprefix("pred_")): pair.verdict for pair in comparison.pairs}
    assert verdicts == {
        ("tfidf_lr", "minilm_lr"): "b dominates",
        ("tfidf_lr", "minilm_knn"): "a dominates",
        ("minilm_lr", "minilm_knn"): "a dominates",
    }
    assert comparison.ranking[0].best == "pred_minilm_lr"
    assert comparison.ranking[0].also == ()
    assert not any(pair.crossings and pair.verdict == "crossing" for pair in comparison.pairs)


@needs_data
def test_models_that_decline_to_answer_are_compared_without_confidences() -> None:
    comparison = demur.compare(str(DATA / "czech_simpleqa" / "*.jsonl.gz"), replicates=200)
    assert len(comparison.evaluations) == 5
    assert all(0 < one.curve.floor < 1 for one in comparison.evaluations)
