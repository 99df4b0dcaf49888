"""Confusion of very many labels: only filled cells take room, and what is not shown is counted."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as package
from commands import Demur
from demur.returns import words
from demur.returns.charts.slices import most_confused
from demur.returns.classes import CLASSES, MOST_CELLS, MOST_CLASSES, Confusion, class_report, majority_baseline
from demur.returns.presentation import of_classes

LABELS = st.sampled_from("abcde")
CELLS = st.lists(st.tuples(LABELS, st.one_of(LABELS, st.none()), st.integers(1, 4)), min_size=1, max_size=20)


def many(n, labels, *, seed=0, share=0.8):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, labels, n)
    guess = np.where(rng.random(n) < share, target, rng.integers(0, labels, n))
    name = "label {:05d}".format
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "target": [name(one) for one in target],
            "prediction": [name(one) for one in guess],
            "confidence": rng.random(n),
        }
    )


@given(CELLS)
def test_filled_cells_say_what_the_full_table_says(cells):
    """By the full table, as one adds it up by hand: hits on the diagonal, support down, predicted across."""
    confusion = Confusion.from_cells(cells)
    table = confusion.counts
    assert confusion.support.tolist() == table.sum(axis=0).tolist()
    assert confusion.predicted.tolist() == table[:-1].sum(axis=1).tolist()
    assert confusion.hits.tolist() == np.diagonal(table[:-1]).tolist()
    assert confusion.rejected_support.tolist() == table[-1].tolist()
    assert float(confusion.rejected) == table[-1].sum()
    assert Confusion.dense(confusion.labels, table, confusion.n) == confusion
    stack = np.stack([table, 2 * table])
    doubled = Confusion.dense(confusion.labels, stack, confusion.n)
    assert doubled.counts.tolist() == stack.tolist()
    assert doubled.support.tolist() == stack.sum(axis=-2).tolist()


def test_replicates_of_many_labels_take_room_for_filled_cells_only():
    """The full tables of 3,000 labels would take 72 MB each."""
    log = many(10_000, 3000)
    tracemalloc.start()
    (report,) = package.classes(log, replicates=100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6
    assert len(report.confusion.labels) > 2500


def test_the_most_frequent_and_the_worst_classes_are_shown_and_the_rest_counted():
    frame = pl.concat(
        [
            many(3000, 400),
            pl.DataFrame({"id": [3000], "target": ["often"], "prediction": ["often"], "confidence": [0.5]}),
        ]
    )
    frame = pl.concat([frame, *(frame[-1:].with_columns(id=pl.lit(4000 + k, pl.Int64)) for k in range(50))])
    (report,) = package.classes(frame, replicates=50)
    document = report.to_dict()
    shown = document["per_class"]
    assert len(shown) == MOST_CLASSES
    assert next(iter(shown)) == "often"
    assert document["classes"] == len(report.confusion.labels) == 401
    assert document["left_out"]["classes"] == 401 - MOST_CLASSES
    hidden = report.class_frame().filter(~pl.col("class").is_in(list(shown)))
    frequent, worst = (list(shown)[:100], list(shown)[100:])
    assert min(shown[label]["support"] for label in frequent) >= hidden["support"].max()
    assert max(shown[label]["f1"] for label in worst) <= hidden["f1"].min()
    cells = sum(len(row) for row in document["confusion"].values())
    assert cells + len(document["rejected_by_class"]) + document["left_out"]["cells"] == report.confusion.weights.size


def test_the_heaviest_confusions_are_among_those_shown():
    cells = [(f"a{k}", f"b{k}", 1.0 + (k == 77)) for k in range(MOST_CELLS + 500)]
    report = class_report(Confusion.from_cells(cells), replicates=50)
    document = report.to_dict()
    assert document["confusion"]["b77"] == {"a77": 2}
    assert report.confusion.worst == ("a77", "b77", 2.0)
    assert document["left_out"]["cells"] == 500
    assert most_confused(report.confusion, 4)[:2] == ("a77", "b77")
    assert "The most frequent confusion is b77 for a77 (2 times)." in words.class_sentences(report)
    one = words.class_sentences(class_report(Confusion.from_cells([("a", "a", 3.0), ("a", None, 1.0)]), replicates=50))
    assert one[1] == "1 input (25 %) was rejected; it counts against recall, not precision."
    single = class_report(Confusion.from_cells(cells[:70]), replicates=50)
    assert "No label is taken for the same other one more than once." in words.class_sentences(single)


def test_of_several_systems_each_has_all_its_sentences_together():
    cells = [("a", "a", 3.0), ("b", "a", 2.0)]
    reports = [replace(class_report(Confusion.from_cells(cells), replicates=50), system=name) for name in ("x", "y")]
    assert len(of_classes(reports[:1]).sentences) == 2
    both = of_classes(reports).sentences
    assert [one.split(":")[0] for one in both] == ["x", "y"]
    assert all(one.endswith(" The most frequent confusion is a for b (2 times).") for one in both)


def test_few_classes_are_all_shown_and_nothing_is_left_out():
    document = class_report(Confusion.of(["a", "b"], ["a", "a"]), replicates=50).to_dict()
    assert "left_out" not in document
    assert list(document["per_class"]) == ["a", "b"]


def test_a_csv_has_every_class_and_the_file_of_confusions_every_cell(demur: Demur, tmp_path):
    many(2000, 500).write_ndjson(tmp_path / "log.jsonl")
    done = demur("classes", "log.jsonl", "-o", "classes.csv", "--confusion", "cells.csv", "--replicates", "50")
    assert done.returncode == 0, done.stderr
    assert "the most frequent and the worst classes, " in done.stdout
    document = json.loads(demur("classes", "log.jsonl", "--json", "--replicates", "50").stdout)
    classes, cells = (pl.read_csv(tmp_path / name) for name in ("classes.csv", "cells.csv"))
    assert classes.columns == ["system", "class", "precision", "recall", "f1", "support"]
    assert classes.height == document["classes"]
    assert cells.columns == ["system", "actual", "predicted", "count"]
    assert cells["count"].sum() == 2000


@pytest.mark.parametrize("clustered", [False, True])
def test_averages_over_many_small_classes_have_intervals_that_hold_them_and_the_truth(clustered):
    """Every class is right four times out of five, so macro F1 is about 0.8; replicates of small classes fall short."""
    log = many(20_000, 2000, seed=1, share=0.8)
    if clustered:
        log = log.with_columns(dialogue=pl.col("id") // 2)
    (report,) = package.classes(log, replicates=200)
    for name in CLASSES:
        figure = report.figures[name]
        assert figure.low <= figure.value <= figure.high
    assert report.figures["macro_f1"].low < 0.8001 < report.figures["macro_f1"].high


def test_the_majority_of_many_labels_is_found_without_a_full_table():
    confusion = Confusion.of([f"l{k % 999}" for k in range(5000)], ["l1"] * 5000)
    assert majority_baseline(confusion).labels[int(np.argmax(majority_baseline(confusion).predicted))] == "l0"
