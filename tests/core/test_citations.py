import re
from pathlib import Path

import pytest

import demur
from demur.apps.cli.app import COMMANDS
from demur.core.show.citations import all_references, references_of
from demur.errors import UsageError
from pages import ROOT, read_page


def test_the_literature_of_the_docs_can_be_cited():
    titles = [re.sub(r"[{}]", "", one.fields["title"]) for one in all_references()]
    listed = [
        line
        for name in ("references", "understanding")
        for line in read_page(name).split("# References")[1].splitlines()
    ]
    listed = [line for line in listed if line.startswith("- ")]
    missing = [line for line in listed if not any(title in line for title in titles)]
    assert len(listed) > 35
    assert missing == []


def test_methods_belong_to_commands_that_there_are():
    words = {job.name.split()[0] for jobs, _ in COMMANDS for job in jobs}
    assert {name for one in all_references() for name in one.commands} <= words


def test_every_command_that_computes_has_literature():
    words = {job.name.split()[0] for jobs, _ in COMMANDS for job in jobs}
    housekeeping = {"add", "cite", "doctor", "rm", "runs", "serve", "validate", "verify-engine"}
    assert words - {name for one in all_references() for name in one.commands} == housekeeping


def test_a_command_has_its_own_methods_and_an_unknown_one_is_refused():
    assert [one.key for one in references_of("gold")][:2] == ["demur", "dersimonian1986"]
    assert len(references_of()) == len(all_references()) + 1
    assert demur.cite("recalibrate fit").count("@") < demur.cite().count("@")
    with pytest.raises(UsageError, match=r'no literature for "comapre".*compare'):
        demur.cite("comapre")


def test_the_tests_and_coefficients_that_tables_name_can_be_cited():
    names = ("compare", "agreement", "simulate", "watch", "merge")
    keys = {name: {one.key for one in references_of(name)} for name in names}
    assert {"mcnemar1947", "clopper1934", "delong1988"} <= keys["compare"]
    assert keys["agreement"] == {"demur", "cohen1960", "fleiss1971", "krippendorff2004"}
    assert {"schatzmann2007", "thomson2010"} <= keys["simulate"]
    assert keys["watch"] == keys["merge"]


def test_the_citation_file_is_of_this_version():
    text = Path(ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == demur.__version__
    assert all(re.search(rf"^{key}:", text, re.MULTILINE) for key in ("cff-version", "title", "message", "authors"))
