"""Lists with an object that has a key twice, of which a confidence would be lost, against a plain reader."""

import csv
import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.nbest_lists.ranks import label_turns
from demur.nbest_lists.table import nbest, read_nbest
from demur.returns.table import Reading, responses
from reference.repeats import repeats

PAIRS = ['"act": "bye"', '"confidence": 0.25', '"confidence" : 0', '"\\u0063onfidence": 0.5', '"note": {"a": ":"}']
PARTS = st.lists(st.sampled_from([*PAIRS, '"note": {"a": 1, "a": 2}', '"note": null']), max_size=3)
HYPOTHESES = PARTS.map(lambda parts: "{" + ", ".join(['"act": "hello"', '"confidence": 0.125', *parts][-3:]) + "}")
LISTS = st.lists(HYPOTHESES, max_size=3).map(lambda one: f"[{', '.join(one)}]")
REPEATED = '[{"act": "bye", "confidence": 0.9, "confidence": 0.1}]'


def _as_jsonl(lists):
    return "".join(f'{{"id": {row}, "reference": "bye", "hypotheses": {one}}}\n' for row, one in enumerate(lists))


def _as_array(lists):
    return "[" + ",".join(_as_jsonl(lists).splitlines()) + "]"


def _as_text(lists):
    rows = ({"id": row, "reference": "bye", "hypotheses": one} for row, one in enumerate(lists))
    return "".join(json.dumps(row) + "\n" for row in rows)


def _as_csv(lists):
    text = io.StringIO()
    csv.writer(text).writerows([("id", "reference", "hypotheses"), *((k, "bye", one) for k, one in enumerate(lists))])
    return text.getvalue()


FORMS = {
    "jsonl": (_as_jsonl, ":{}"),
    "json": (_as_array, ": element {}"),
    "csv": (_as_csv, ":"),
    "ndjson": (_as_text, ":{}"),
}


@pytest.mark.parametrize("ending", FORMS)
@given(st.lists(LISTS, min_size=1, max_size=4))
@example([REPEATED])
@example(["[]", REPEATED.replace("0.9", "null")])
def test_lists_are_refused_if_and_only_if_an_object_has_a_key_twice(tmp_path_factory, ending, lists):
    write, place = FORMS[ending]
    path = tmp_path_factory.mktemp("lists") / f"run.{ending}"
    path.write_text(write(lists))
    first = next((row for row, one in enumerate(lists, start=1) if repeats(one)), None)
    message = ""
    try:
        read_nbest(path)
    except DataError as fault:
        message = str(fault)
    assert ("has the key" in message) == (first is not None)
    assert first is None or f"run.{ending}{place.format(first)}" in message


def test_a_list_in_a_cell_of_a_frame_is_refused_with_its_row():
    with pytest.raises(DataError, match='data: row 1: hypotheses has the key "confidence" 2 times'):
        nbest([{"reference": "bye", "hypotheses": REPEATED}])


def test_labels_beside_an_answer_are_refused_with_its_id():
    told = {"target": "a", "prediction": "a", "confidence": 0.5}
    lists = ["[]", "no list", '[{"label": "a", "p": 0.9, "p": 0.1}]']
    rows = [{"id": row, "nbest": one, **told} for row, one in enumerate(lists)]
    with pytest.raises(DataError, match='mine: id "2": nbest has the key "p" 2 times'):
        label_turns(responses(rows, system="mine", reading=Reading(keep=("nbest",))))
