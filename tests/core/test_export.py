import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from demur.core.show.page import save_chart
from demur.errors import UsageError
from demur.returns.charts.error_return import error_return_chart


@pytest.fixture(scope="module")
def chart(evaluations):
    return error_return_chart(evaluations)


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("html", b"<!doctype html>")]
)
def test_each_format_is_written_whole_and_alone(chart, tmp_path, ending, start):
    path = tmp_path / "new" / f"figure.{ending}"
    save_chart(chart, path)
    assert path.read_bytes().startswith(start)
    assert path.stat().st_size > 5000
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.fixture(scope="module")
def picture(chart, tmp_path_factory):
    path = tmp_path_factory.mktemp("picture") / "figure.svg"
    save_chart(chart, path)
    return path


def test_a_picture_holds_no_tooltip_points(picture):
    assert len(re.findall("<path", picture.read_text())) < 200


def test_a_picture_says_what_it_shows(chart, picture):
    root = ElementTree.parse(picture).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img"
    assert [child.tag for child in root][:2] == [f"{space}title", f"{space}desc"]
    assert root[0].text == "Error-return curves of 3 systems"
    assert root[1].text == chart.to_dict()["description"]


def test_an_unknown_ending_is_refused_with_the_known_ones(chart, tmp_path):
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.pdf, \.html.*figure\.bmp"):
        save_chart(chart, tmp_path / "figure.bmp")
    assert not list(tmp_path.iterdir())


def test_a_fault_while_drawing_leaves_the_old_file(tmp_path):
    path = tmp_path / "figure.svg"
    path.write_text("old")
    with pytest.raises(AttributeError):
        save_chart(object(), path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["figure.svg"]


def without(module, code):
    """What a new Python says that cannot import the module."""
    blocked = f"import sys; sys.modules[{module!r}] = None\n{code}"
    return subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("module", "parts"), [("altair", ("charts", "page")), ("vl_convert", ("page", "pictures"))])
def test_without_the_extra_figures_say_what_to_install(module, parts):
    code = "from demur.errors import UsageError\n" + "\n".join(
        f"try:\n    import demur.core.show.{part}\nexcept UsageError as fault:\n    print(fault)" for part in parts
    )
    done = without(module, code)
    assert done.stdout.splitlines() == ["figures need the extra: pip install 'demur[plots]'"] * 2
    assert done.stderr == ""
