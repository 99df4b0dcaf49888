"""What `demur doctor` says of an installation, and what shells complete."""

import json
import subprocess
import sys

import pytest

from commands import run_in
from demur.apps.cli import doctor


def test_a_whole_installation_works_and_names_its_extras_engines_and_programs(tmp_path):
    document = json.loads(run_in(tmp_path, "doctor", "--json").stdout)
    assert (document["format"], document["works"]) == (1, True)
    parts = {one["part"] for one in document["checks"]}
    assert parts == {"base", "extra", "engine", "program", "store"}
    versions = {one["name"]: one["detail"] for one in document["checks"] if one["part"] == "base"}
    assert versions["numpy"] == doctor.version_of("numpy")


def test_a_missing_base_package_fails_and_is_named_with_its_fix(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "version_of", lambda name: None if name == "scipy" else "99")
    done = run_in(tmp_path, "doctor")
    assert done.returncode == 1
    assert "scipy:         pip install 'scipy>=" in done.stdout


def test_a_missing_extra_is_optional_and_says_what_it_lacks(monkeypatch):
    monkeypatch.setattr(doctor, "version_of", lambda name: None if name == "altair" else "99")
    (plots,) = (one for one in doctor.extra_checks() if one.name == "plots")
    assert (plots.works, plots.detail, plots.fix) == (False, "lacks altair", "pip install 'demur[plots]'")


@pytest.mark.parametrize(
    ("words", "place", "offered"), [("demur sc", 1, "score"), ("demur score --at-e", 2, "--at-error")]
)
def test_shells_complete_commands_and_options(words, place, offered):
    program = "from demur.apps.cli.main import run; import sys; sys.argv = ['demur']; run()"
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(place), "_DEMUR_COMPLETE": "complete_bash"}
    done = subprocess.run([sys.executable, "-c", program], env=asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [offered]
