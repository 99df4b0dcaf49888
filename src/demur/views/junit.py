"""A report for machines that show test results: gates as test cases, in JUnit's XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, however they are written."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test case: what it is about, what is asked of it, and why it fails where it does."""

    subject: str
    name: str
    failure: str | None = None


def junit(
    suite: str, cases: Sequence[Case], *, timestamp: str, seconds: float = 0.0, output: Sequence[str] = ()
) -> str:
    """One test suite; `output` are lines for its standard output.

    >>> print(junit("report", [Case("guide", "augrc > 0.1", "it is 0.2")], timestamp="2024-05-01"))
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="report" tests="1" failures="1" errors="0" skipped="0" time="0.000">
      <testsuite name="report" tests="1" failures="1" errors="0" skipped="0" time="0.000" timestamp="2024-05-01">
        <testcase classname="guide" name="augrc &gt; 0.1" time="0.000">
          <failure message="it is 0.2" type="gate">it is 0.2</failure>
        </testcase>
      </testsuite>
    </testsuites>
    <BLANKLINE>
    """
    failed = sum(case.failure is not None for case in cases)
    counts = f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="0" time="{seconds:.3f}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={_attribute(suite)} {counts}>",
        f"  <testsuite name={_attribute(suite)} {counts} timestamp={_attribute(timestamp)}>",
        *(line for case in cases for line in _case(case)),
        *([f"    <system-out>{_text(chr(10).join(output))}</system-out>"] if output else []),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(case: Case) -> list[str]:
    start = f"    <testcase classname={_attribute(case.subject)} name={_attribute(case.name)} time="
    if case.failure is None:
        return [f'{start}"0.000"/>']
    told = f'      <failure message={_attribute(case.failure)} type="gate">{_text(case.failure)}</failure>'
    return [f'{start}"0.000">', told, "    </testcase>"]


def _sound(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def _text(text: str) -> str:
    return escape(_sound(text))


def _attribute(text: str) -> str:
    return quoteattr(_sound(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
