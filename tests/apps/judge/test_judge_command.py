"""The command `demur judge`: what would be judged, going on where judging stood, and what it refuses."""

import json
from pathlib import Path

import pytest

from commands import Demur
from demur.apps.judge import command
from demur.judges.session import Judging
from judges.judged import answers, judge_all, write_log


@pytest.fixture
def judges_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has every judge judge 25 answers where pages would be served."""

    def serve(judging: Judging, *_: object, **__: object) -> None:
        with judging.journal.served():
            for judge in judging.plan.judges:
                judge_all(judging, judge, most=25)

    monkeypatch.setattr("demur.apps.judge.server.serve", serve)


def test_a_dry_run_says_what_would_be_judged_and_leaves_nothing(tmp_path: Path, demur: Demur) -> None:
    write_log(tmp_path / "log.jsonl", answers(200))
    asked = ("judge", "log.jsonl", "--judges", "anna,ben", "--sample", "50", "--overlap", "0.4", "--dry-run")
    done = demur(*asked)
    assert done.stdout.startswith("5")
    assert "of 200 inputs are drawn, by 10 strata of confidence" in done.stdout
    document = json.loads(demur(*asked, "--json").stdout)
    assert sum(one["drawn"] for one in document["strata"]) == 50
    assert document["shared"] == round(0.4 * document["answers"])
    assert sum(document["judges"].values()) == document["answers"] + document["shared"]
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


@pytest.mark.usefixtures("judges_at_work")
def test_judging_goes_on_where_it_stood_and_the_log_is_written(tmp_path: Path, demur: Demur) -> None:
    write_log(tmp_path / "log.jsonl", answers(60, ("alpha",)))
    asked = ("judge", "log.jsonl", "-o", "judged.jsonl", "--judges", "anna,ben", "--overlap", "0.5")
    first = demur(*asked)
    assert first.returncode == 0, first.stderr
    assert "wrote judged.jsonl" in first.stderr
    assert "not judged yet: the log stands on what is judged" in first.stderr
    second = demur("judge", "log.jsonl", "-o", "judged.jsonl")
    assert "not judged yet" not in second.stderr.split("wrote")[0].splitlines()[-2]
    rows = [json.loads(line) for line in (tmp_path / "judged.jsonl").read_text().splitlines()]
    assert all(row["correct"] is not None for row in rows if row["prediction"])
    assert "weight" not in rows[0]
    shown = json.loads(demur("agreement", "judged.judging", "--replicates", "50", "--json").stdout)
    assert shown["answers"]["pending"] == 0
    done = demur("agreement", "judged.judging", "-o", "again.csv", "--replicates", "50")
    assert "wrote again.csv" in done.stderr
    assert json.loads(demur("score", "again.csv", "--replicates", "50", "--json").stdout)["systems"][0]["n"] == 60


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--sample", "10"), "was begun otherwise: --sample was not given"),
        (("--judges", "anna"), "--judges was anna, ben"),
        (("--labels", "good=right,bad=wrong"), "--labels was right, wrong, unsure"),
        (("--seed", "5"), "--seed was 0"),
        (("--show", "id"), "--show was none"),
    ],
)
@pytest.mark.usefixtures("judges_at_work")
def test_other_options_than_it_was_begun_with_are_refused(
    tmp_path: Path, demur: Demur, options: tuple[str, ...], fault: str
) -> None:
    write_log(tmp_path / "log.jsonl", answers(20))
    demur("judge", "log.jsonl", "-o", "judged.jsonl", "--judges", "anna,ben")
    done = demur("judge", "log.jsonl", "-o", "judged.jsonl", *options)
    assert done.returncode == 2
    if "--show" not in options:  # which changes what is judged, so that it is another log
        assert fault in done.stderr
    else:
        assert "was begun with another log" in done.stderr


@pytest.mark.usefixtures("judges_at_work")
def test_another_log_is_refused(tmp_path: Path, demur: Demur) -> None:
    write_log(tmp_path / "log.jsonl", answers(20))
    demur("judge", "log.jsonl", "-o", "judged.jsonl")
    write_log(tmp_path / "log.jsonl", answers(21))
    done = demur("judge", "log.jsonl", "-o", "judged.jsonl")
    assert done.returncode == 2
    assert "judged.judging was begun with another log (log.jsonl), or that log has changed since" in done.stderr


@pytest.mark.usefixtures("judges_at_work")
def test_a_folder_that_is_served_is_refused(tmp_path: Path, demur: Demur) -> None:
    write_log(tmp_path / "log.jsonl", answers(20))
    demur("judge", "log.jsonl", "-o", "judged.jsonl")
    other = Judging.open(tmp_path / "judged.judging")
    with other.journal.served():
        done = demur("judge", "log.jsonl", "-o", "judged.jsonl")
    assert done.returncode == 2
    assert "another process serves judged.judging already" in done.stderr


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("-o", "judged.txt"), "-o judged.txt|--output judged.txt: the name must end in one of"),
        (("--json",), "--json goes with --dry-run"),
        (("--labels", "right,right", "--dry-run"), 'the label "right" is there twice'),
        (("--labels", "right", "--dry-run"), "2 to 9 labels"),
        (("--labels", "right,x=good", "--dry-run"), "--labels takes names such as"),
        (("--guidelines", "nothing.toml", "--dry-run"), "nothing.toml cannot be read"),
        (("--judges", "anna,anna", "--dry-run"), 'two judges are called "anna"'),
        (("--sample", "1", "--dry-run"), "--sample must be at least 2"),
        (("--overlap", "2", "--dry-run"), "--overlap must be at least 0 and at most 1"),
        (("--show", "system", "--dry-run"), "--show system: judges must not know the system"),
        (("--show", "nothing", "--dry-run"), 'there is no column "nothing"'),
        (("-o", "log.jsonl"), "this file is read here"),
    ],
)
def test_slips_are_said_before_anybody_judges(
    tmp_path: Path, demur: Demur, options: tuple[str, ...], fault: str
) -> None:
    write_log(tmp_path / "log.jsonl", answers(5))
    done = demur("judge", "log.jsonl", *options)
    assert done.returncode == 2
    assert any(one in done.stderr for one in fault.split("|")), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_the_log_is_named_after_the_first_file() -> None:
    assert str(command._usual_output(["runs/log.jsonl.gz"])) == "runs/log-judged.jsonl"
    assert str(command._usual_output(["-"])) == "judged.jsonl"
