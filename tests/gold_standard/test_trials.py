"""The table of trials: performers and roles, kinds of performance, subjects, components and studies."""

import gzip
import io
import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.io.columns import TRIAL_ALIASES
from demur.gold_standard.trials import TrialReading, Trials, component_names, read_trials, trials

READING = TrialReading(x="wer", y="done")


def row(performer="A", wer=0.1, done=1, **more):
    return {"performer": performer, "wer": wer, "done": done, **more}


WIZARD = row("wizard", 0.2, 1)


def one(rows, **options) -> Trials:
    (found,) = trials(rows, reading=TrialReading(**{"x": "wer", "y": "done", **options}))
    return found


def contents(found: Trials):
    """All that trials hold, as plain values that can be compared."""
    arrays = (found.performer, found.x, found.y, found.n, found.subject, found.combination)
    names = (found.study, found.x_name, found.y_name, found.kind, found.lower, found.upper, found.performers)
    rest = (found.roles, found.subjects, found.combinations, found.independent, found.notes, found.warnings)
    return (*names, *rest, *(array.tolist() for array in arrays))


def test_a_study_of_five_trials_by_hand():
    rows = [
        row("B", 0.5, 0, role="system", subject="u2"),
        row("A", 0.5, 0, role="system", subject="u1"),
        row("A", 0.1, 1, role="system", subject="u1"),
        row("Zoe", 0.5, 1, role="gold", subject="w"),
        row("Zoe", 0.1, 1, role="gold", subject="u2"),
    ]
    found = one(rows)
    assert (found.study, found.x_name, found.y_name, len(found)) == ("study", "wer", "done", 5)
    assert (found.kind, found.lower, found.upper) == ("trials", 0.0, 1.0)
    assert (found.performers, found.roles) == (("Zoe", "A", "B"), ("gold", "system", "system"))
    assert found.subjects == ("u1", "u2", "w")
    assert found.performer.tolist() == [0, 0, 1, 1, 2]
    assert found.subject.tolist() == [1, 2, 0, 0, 1]
    assert found.x.tolist() == [0.1, 0.5, 0.1, 0.5, 0.5]
    assert found.y.tolist() == [1, 1, 1, 0, 0]
    assert found.n.tolist() == [1, 1, 1, 1, 1]
    assert (found.combination.tolist(), found.combinations) == ([0] * 5, (frozenset(),))
    assert not found.independent
    assert found.notes == found.warnings == ()


def test_arrays_are_of_one_type_and_cannot_be_written_to():
    found = one([WIZARD, row()])
    for array in (found.performer, found.subject, found.combination):
        assert array.dtype == np.int64
    for array in (found.x, found.y, found.n):
        assert array.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


TRIAL_ROWS = st.fixed_dictionaries(
    {
        "performer": st.sampled_from(["wizard", "A", "B"]),
        "wer": st.sampled_from([0.0, -0.0, 0.25, 0.5]),
        "done": st.sampled_from([0, 1]),
        "subject": st.sampled_from([None, "s1", "s2"]),
        "components": st.sampled_from([None, "asr", "nlu+asr", "asr;nlu"]),
    }
)


@given(st.lists(TRIAL_ROWS, max_size=12).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_the_order_of_rows_does_not_matter(pair):
    plain, shuffled = (one([WIZARD, row(), *rows]) for rows in pair)
    assert contents(plain)[:-7] == contents(shuffled)[:-7]
    assert contents(plain)[-6:] == contents(shuffled)[-6:]
    assert plain.digest == shuffled.digest


@given(st.lists(TRIAL_ROWS, max_size=12))
def test_performers_have_all_trials_between_them(rows):
    found = one([WIZARD, row(), *rows])
    assert len(found) == len(rows) + 2
    assert found.performer.tolist() == sorted(found.performer)
    assert set(found.performer) == set(range(len(found.performers)))


def test_the_digest_changes_with_the_data_and_not_with_the_names_of_columns():
    digest = one([WIZARD, row()]).digest
    assert len(digest) == 16
    renamed = one(
        [{"system": r["performer"], "noise": r["wer"], "ok": r["done"]} for r in (WIZARD, row())], x="noise", y="ok"
    )
    assert renamed.digest == digest
    changes = [row(wer=0.2), row(done=0), row("B"), row(subject="s"), row(components="asr"), row(n=1)]
    others = {one([{**WIZARD, **({"n": 1} if "n" in changed else {})}, changed]).digest for changed in changes}
    assert len({digest, *others}) == len(changes) + 1


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("gold", "gold"), ("Wizard", "gold"), ("HUMAN", "gold"), (" reference ", "gold"), ("Machine", "system")],
)
def test_roles_may_be_written_in_other_words(word, meaning):
    other = row("other", role="system" if meaning == "gold" else "gold")
    found = one([row("this", role=word), other])
    assert dict(zip(found.performers, found.roles, strict=True))["this"] == meaning
    told = (f'role "{word.strip().lower()}" read as {meaning}',)
    assert found.notes[:-1] == (() if word == "gold" else told)


@pytest.mark.parametrize("name", ["gold", "wizard", "Wizards", "HUMAN", "humans"])
def test_the_gold_standard_is_recognised_by_its_name_and_told(name):
    found = one([row("A"), row(name)])
    assert found.performers == (name, "A")
    assert found.notes[0] == f'performer "{name}" read as the gold standard'


def test_the_gold_standard_can_be_named():
    found = one([row("touch screen"), row("speech"), row("wizard")], gold=("touch screen",))
    assert found.performers == ("touch screen", "speech", "wizard")
    assert found.roles == ("gold", "system", "system")
    assert not [note for note in found.notes if "gold" in note]


def test_a_gold_standard_that_is_named_goes_before_the_column_role():
    found = one([row("A", role="gold"), row("B", role="system")], gold=("B",))
    assert found.performers == ("B", "A")
    assert found.notes[0] == "the column role is not looked at, as the gold standard was named"


def test_several_gold_performers_are_one_gold_standard_and_the_subjects_of_their_trials():
    rows = [row("ann", 0.1, role="gold"), row("bob", 0.2, role="gold"), row("ann", 0.3, role="gold")]
    found = one([*rows, row("A", 0.4, role="system"), row("A", 0.4, role="system")])
    assert found.performers == ("gold standard", "A")
    assert found.x[found.performer == 0].tolist() == [0.1, 0.3, 0.2]
    assert found.subjects == ("ann", "bob", "trial 1", "trial 2")
    assert found.subject.tolist() == [0, 0, 1, 2, 3]
    assert not found.independent
    assert found.notes == (
        'gold standard: "ann", "bob" taken together',
        "gold performers are the subjects of their trials where no other is named",
        "no column names subjects: each trial of a system is taken for a subject of its own",
    )


def test_a_subject_that_is_named_goes_before_the_gold_performer():
    rows = [row("ann", role="gold", subject="u"), row("bob", role="gold"), row("A", role="system", subject="u")]
    found = one(rows)
    assert found.subjects == ("bob", "u")
    assert found.subject.tolist() == [0, 1, 1]
    assert found.warnings == ()


def test_one_gold_performer_is_nobodys_subject():
    found = one([WIZARD, {**WIZARD, "wer": 0.4}, row()])
    assert found.independent
    assert found.subjects == ("trial 1", "trial 2", "trial 3")
    assert found.subject.tolist() == [0, 1, 2]
    assert found.notes[-1] == "no column names subjects: each trial is taken for a subject of its own"


def test_rows_that_name_no_subject_among_others_are_counted():
    found = one([{**WIZARD, "subject": "trial 1"}, row(), row(wer=0.2, subject=" ")])
    assert found.subjects == ("trial 1", "trial 1", "trial 2"), "a subject of that name is someone else"
    assert found.subject.tolist() == [0, 1, 2]
    assert not found.independent
    assert found.warnings == ("2 rows name no subject and are each taken for one of their own, first data: row 2",)


def test_subjects_may_be_numbers():
    assert one([{**WIZARD, "subject": 10.0}, row(subject=9.0)]).subjects == ("10", "9")


@pytest.mark.parametrize(
    "values", [(1, 0), (True, False), ("yes", "No"), ("TRUE", " false "), ("1.0", "0"), (1.0, 0.0), ("yes", 0)]
)
def test_success_is_1_and_failure_0(values):
    found = one([row("wizard", done=values[0]), row("A", done=values[1])])
    assert (found.kind, found.upper, found.y.tolist()) == ("trials", 1.0, [1.0, 0.0])


@pytest.mark.parametrize("upper", [None, 1, 1.0])
def test_zeros_and_ones_are_trials_when_1_is_the_bound(upper):
    assert one([row("wizard"), row(done=0)], upper=upper).kind == "trials"


def test_zeros_and_ones_are_scores_when_another_bound_is_given():
    found = one([row("wizard"), row(done=0)], upper=5)
    assert (found.kind, found.upper) == ("scores", 5)
    assert one([row("wizard"), row(done=0)], lower=-1, upper=1).kind == "scores"


def test_shares_with_n_are_rates():
    found = one([row("wizard", done=0.9, n=10), row(done=0.25, n="4")])
    assert (found.kind, found.lower, found.upper) == ("rates", 0.0, 1.0)
    assert (found.y.tolist(), found.n.tolist()) == ([0.9, 0.25], [10.0, 4.0])
    assert one([row("wizard", n=1), row(done=0, n=1)], upper=1).kind == "rates"


def test_a_rate_that_was_rounded_too_far_is_told():
    rows = [row("wizard", done=0.67, n=3), row(done=0.7, n=3), row(done=0.335, n=3)]
    notes = one(rows).notes
    assert notes[-1] == "done times n is no whole number in 1 row, first at data: row 2: was it rounded?"


def test_scores_have_the_bounds_given():
    found = one([row("wizard", done=7), row(done=1.5)], lower=1, upper=7)
    assert (found.kind, found.lower, found.upper, found.y.tolist()) == ("scores", 1, 7, [7.0, 1.5])
    assert one([row("wizard", done=0.9), row(done=0.5)], upper=1).kind == "scores"


def test_scores_above_1_without_a_bound_have_none_and_it_is_told():
    found = one([row("wizard", done=12.5), row(done=0.5)])
    assert (found.kind, found.upper) == ("scores", None)
    assert found.notes[-1] == "done has no upper bound; intellectual complexity needs one: --upper U, or upper=U"
    assert one([row("wizard", done=-4), row(done=0.5)], lower=-math.inf).kind == "scores"


def test_mean_scores_may_have_an_n():
    found = one([row("wizard", done=5.5, n=8), row(done=3, n=2)], upper=7)
    assert (found.kind, found.n.tolist()) == ("scores", [8.0, 2.0])
    assert found.notes[-1] == "done is the mean of n trials in each row"


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_rows_without_x_or_y_are_left_out_counted_and_the_first_named(nothing):
    found = one([WIZARD, row(wer=nothing), row(), row("B", done=nothing)])
    assert found.performers == ("wizard", "A")
    assert found.warnings == (
        '2 rows have no wer or no done and are left out, first data: row 2; nothing is left of "B"',
    )


def test_a_rate_of_no_trials_is_left_out_with_its_missing_value():
    found = one([row("wizard", done=1, n=4), row(done=0.5, n=2), row(wer=0.9, done=None, n=0)])
    assert found.n.tolist() == [4.0, 2.0]
    assert found.warnings == ("1 row has no wer or no done and is left out, first data: row 3",)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("asr+nlu", ["asr", "nlu"]),
        ("nlu, asr", ["asr", "nlu"]),
        ("nlu;asr;nlu;", ["asr", "nlu"]),
        ('["nlu", "asr", null]', ["asr", "nlu"]),
        ("repair strategy", ["repair strategy"]),
        ("None", []),
        ("[]", []),
        ("", []),
        ("[asr]", None),
        ('["asr"', None),
        ("[1]", None),
        ('{"asr": true}', None),
        ("[" * 5000, None),
    ],
)
def test_components_may_be_written_in_several_ways(text, names):
    assert component_names(text) == names


def test_combinations_are_those_that_systems_ran_fewest_components_first():
    on = ["nlu+asr", None, ["asr"], "none", "asr;nlu", "nlu"]
    systems = [row(wer=number / 10, components=names) for number, names in enumerate(on)]
    found = one([row("wizard", components="elbow"), *systems])
    assert found.combinations == (frozenset(), frozenset({"asr"}), frozenset({"nlu"}), frozenset({"asr", "nlu"}))
    assert found.combination.tolist() == [0, 3, 0, 1, 0, 3, 2]


def test_components_may_be_a_column_of_lists():
    frame = pl.DataFrame([{**WIZARD, "components": []}, row(components=["nlu", "asr"])])
    assert one(frame).combinations == (frozenset({"asr", "nlu"}),)


@pytest.mark.parametrize(("part", "alias"), [(part, name) for part, names in TRIAL_ALIASES.items() for name in names])
def test_every_alias_is_recognised_and_told(part, alias):
    rows = [row("wizard", n=2, subject="s", study="t", order=1), row(n=2, subject="s", study="t", order=2)]
    found = one([{alias if name == part else name: value for name, value in each.items()} for each in rows])
    assert f"{part} <- {alias}" in found.notes
    assert (found.kind, found.subjects, found.study, found.performers) == ("rates", ("s",), "t", ("wizard", "A"))


def test_an_alias_does_not_claim_x_or_y():
    rows = [{"performer": "wizard", "n": 3, "count": 4}, {"performer": "A", "n": 5, "count": 2}]
    found = one(rows, x="n", y="count")
    assert (found.kind, found.x.tolist(), found.y.tolist()) == ("scores", [3.0, 5.0], [4.0, 2.0])
    assert one([{**each, "k": 1} for each in rows], x="n", y="count", columns={"n": "k"}, upper=4).n.tolist() == [1, 1]


def test_a_mapping_settles_which_column_is_the_subject():
    rows = [{**WIZARD, "user": "u", "caller": "c"}, row(user="v", caller="d")]
    assert one(rows, columns={"subject": "caller"}).subjects == ("c", "d")


def test_only_rows_that_were_asked_for_are_read():
    rows = [{**WIZARD, "noise": "car"}, row(noise="car"), row("B", wer="?", noise="home")]
    found = one(rows, where=(("noise", "car"),))
    assert found.performers == ("wizard", "A")
    assert "data: 2 of 3 rows kept where noise is car" in found.notes


def test_a_column_names_the_studies():
    rows = [{**each, "study": study} for study in ("music", "hotels") for each in (WIZARD, row())]
    rows.append(row("B", study="music"))
    hotels, music = trials(rows, reading=READING)
    assert (hotels.study, music.study) == ("hotels", "music")
    assert (hotels.performers, music.performers) == (("wizard", "A"), ("wizard", "A", "B"))


def test_studies_may_differ_in_kind_and_in_who_is_the_gold_standard():
    rows = [
        row("A", role="gold", study="1"),
        row("B", role="system", study="1"),
        row("B", done=0.5, n=2, role="gold", study="2"),
        row("A", done=0.5, n=2, role="system", study="2"),
    ]
    first, second = trials(rows, reading=READING)
    assert (first.performers, first.kind) == (("A", "B"), "trials")
    assert (second.performers, second.kind) == (("B", "A"), "rates")


CSV = "performer,role,wer,done,subject\nann,gold,0.1,yes,s1\nA,system,0.25,no,s1\nA,system,,yes,s2\n"
JSONL = "".join(
    json.dumps(each) + "\n"
    for each in (
        {"performer": "ann", "role": "gold", "wer": 0.1, "done": True, "subject": "s1"},
        {"performer": "A", "role": "system", "wer": 0.25, "done": False, "subject": "s1"},
        {"performer": "A", "role": "system", "wer": None, "done": True, "subject": "s2"},
    )
)


def written(folder: Path, name: str) -> Path:
    path = folder / name
    if name.endswith(".parquet"):
        pl.read_ndjson(io.StringIO(JSONL)).write_parquet(path)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(JSONL.encode()))
    else:
        text = {".csv": CSV, ".tsv": CSV.replace(",", "\t")}.get(path.suffix, JSONL)
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.jsonl.gz", "t.parquet"])
def test_files_of_every_format_give_the_same_trials(tmp_path, name):
    (found,) = read_trials(written(tmp_path, name), reading=READING)
    assert (found.study, found.performers, found.x.tolist()) == ("t", ("ann", "A"), [0.1, 0.25])
    assert (found.y.tolist(), found.subjects) == ([1.0, 0.0], ("s1",))
    assert found.digest == one([json.loads(line) for line in JSONL.splitlines()]).digest
    assert "1 row has no wer or no done and is left out, first" in found.warnings[0]
    place = "row 3" if name.endswith("parquet") else f":{3 if 'jsonl' in name else 4}"
    assert found.warnings[0].endswith(place)


def test_standard_input_is_the_study_stdin(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(CSV.encode()))))
    (found,) = read_trials("-", reading=READING)
    assert (found.study, len(found)) == ("stdin", 2)


def test_several_files_are_several_studies_in_order_of_name(tmp_path):
    for name in ("zoo.csv", "hotels.jsonl"):
        written(tmp_path, name)
    found = read_trials(str(tmp_path / "*"), reading=READING)
    assert [each.study for each in found] == ["hotels", "zoo"]
    assert found[0].digest == found[1].digest


def test_files_of_one_stem_are_told_apart_by_folder_and_then_by_path(tmp_path):
    for folder in ("a", "b", "b/a"):
        (tmp_path / folder).mkdir()
    apart = [written(tmp_path / "a", "t.csv"), written(tmp_path / "b", "t.csv")]
    assert [each.study for each in read_trials(*apart, reading=READING)] == ["a/t", "b/t"]
    alike = [apart[0], written(tmp_path / "b/a", "t.csv")]
    assert {each.study for each in read_trials(*alike, reading=READING)} == set(map(str, alike))


def test_a_column_study_makes_one_study_of_several_files(tmp_path):
    (tmp_path / "1.csv").write_text("performer,wer,done,study\nwizard,0.1,1,hotels\n")
    (tmp_path / "2.csv").write_text("study,performer,wer,done\nhotels,A,0.2,1\nhotels,A,0.3,1\n")
    (found,) = read_trials(tmp_path / "1.csv", tmp_path / "2.csv", reading=READING)
    assert (found.study, found.performers, len(found)) == ("hotels", ("wizard", "A"), 3)


@given(st.lists(TRIAL_ROWS, max_size=8))
def test_frames_of_every_library_give_equal_trials(rows):
    frame = pl.DataFrame([{**WIZARD, "subject": "s1", "components": "asr"}, {**row(), "subject": "s2"}, *rows])
    plain = contents(one(frame))
    assert contents(one(frame.to_arrow())) == plain
    assert contents(one(frame.to_pandas())) == plain
    assert contents(one(frame.lazy())) == plain
    assert contents(one(frame.to_dicts())) == plain
    assert contents(one(frame.to_dict(as_series=False))) == plain
