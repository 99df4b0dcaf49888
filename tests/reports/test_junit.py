import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from demur.apps.cli.app import JUnitCase, junit

ANYTHING = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)


def test_counts_and_failures_are_told():
    cases = [
        JUnitCase("files", "log.jsonl is read"),
        JUnitCase("guide", "not augrc > 0.1", "guide: augrc > 0.1 holds: it is 0.2"),
    ]
    root = ET.fromstring(junit("Report", cases, timestamp="2024-05-01T12:00:00", seconds=1.5, output=["a", "b"]))
    suite = root.find("testsuite")
    assert suite is not None
    wanted = {"tests": "2", "failures": "1", "errors": "0", "skipped": "0", "time": "1.500"}
    assert wanted.items() <= suite.attrib.items()
    assert wanted.items() <= root.attrib.items()
    assert suite.attrib["timestamp"] == "2024-05-01T12:00:00"
    assert [case.attrib["classname"] for case in suite.iter("testcase")] == ["files", "guide"]
    (failure,) = suite.iter("failure")
    assert failure.text == failure.attrib["message"] == "guide: augrc > 0.1 holds: it is 0.2"
    assert suite.findtext("system-out") == "a\nb"


def test_a_report_without_gates_is_a_suite_without_cases():
    root = ET.fromstring(junit("Report", [], timestamp="2024-05-01T12:00:00"))
    assert root.attrib["tests"] == "0"
    assert root.find("testsuite/system-out") is None


@given(ANYTHING, ANYTHING, ANYTHING)
def test_whatever_is_written_the_xml_is_sound(suite, subject, failure):
    text = junit(suite, [JUnitCase(subject, failure, failure)], timestamp="t", output=[suite])
    root = ET.fromstring(text.encode("utf-8"))
    assert len(root.findall("testsuite/testcase")) == 1


def test_characters_that_xml_forbids_are_made_visible():
    text = junit("a\x00b\x1b]]>&<\ud800", [], timestamp="t", output=["]]>"])
    assert ET.fromstring(text.encode()).attrib["name"] == "a⟨U+0000⟩b⟨U+001B⟩]]>&<⟨U+D800⟩"
