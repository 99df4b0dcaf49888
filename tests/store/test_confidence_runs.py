import polars as pl
import pytest

from demur import add_runs
from demur.apps.web.pages.adding import upload_options
from demur.apps.web.site import Query
from demur.errors import UsageError
from demur.store.runs import Store


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    rows = [{"id": k, "correct": k % 3 > 0, "verbal": f"{90 - k} %", "logprob": -k} for k in range(12)]
    pl.DataFrame(rows).write_csv(path)
    return path


def test_every_column_of_confidences_makes_a_run(tmp_path, log):
    added = add_runs(log, confidence=("verbal", "logprob"), store=tmp_path / "store")
    assert [one.run.name for one in added.added] == ["log:verbal", "log:logprob"]
    with Store.open(tmp_path / "store") as store:
        verbal, logprob = (store.responses(one.run).frame["confidence"] for one in added.added)
    assert sorted(verbal)[-1] == 0.9
    assert sorted(logprob)[0] == -11
    with pytest.raises(UsageError, match="and so does `columns`"):
        add_runs(log, confidence=("verbal",), columns={"confidence": "logprob"}, store=tmp_path / "store")


def test_an_upload_may_name_columns_of_confidences():
    query = Query({}, [("confidence", "verbal"), ("confidence", "logprob")])
    assert upload_options(query)["reading"]["confidence"] == ("verbal", "logprob")


def test_grades_are_no_slices_of_a_run_and_trials_are_kept_in_mind(tmp_path):
    path = tmp_path / "tried.csv"
    rows = [
        {"id": k // 2, "epoch": k % 2, "correct": k % 3 > 0, "confidence": k, "grade": "CI"[k % 3 == 0], "noise": k % 5}
        for k in range(60)
    ]
    pl.DataFrame(rows).write_csv(path)
    (one,) = add_runs(path, store=tmp_path / "store").added
    assert one.run.about["slices"] == ["noise"]
    assert one.run.about["repeats_ids"] is True
