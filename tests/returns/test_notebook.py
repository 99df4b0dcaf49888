import html
import re

import pytest

from demur.core.show import html as notebook
from demur.errors import UsageError
from demur.returns.charts.error_return import error_return_chart
from demur.returns.comparison.compare import compare
from demur.returns.table import Reading, responses

MOST = 200_000
"""Letters that a result with its picture may add to a notebook."""


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv(notebook.SETTING, raising=False)


def frame_of(shown):
    (page,) = re.findall(r'<iframe [^>]*srcdoc="([^"]*)"></iframe>', shown)
    return html.unescape(page)


def test_a_comparison_shows_sentences_the_plot_in_a_frame_and_tables(comparison):
    shown = comparison._repr_html_()
    assert shown.startswith("<div><p>better makes fewer errors than base overall")
    assert shown.index("</p><iframe ") < shown.index("</iframe><div class")
    assert 'sandbox="allow-scripts"' in shown
    assert len(shown) < 1_400_000
    page = frame_of(shown)
    assert page.startswith("<!doctype html>")
    assert "data-explorer" in page
    assert "default-src 'none'" in page


def test_a_comparison_with_slices_shows_the_plot_of_the_whole_systems(tables):
    read = responses([*tables["base"], *tables["better"]], reading=Reading(keep=("part",)))
    page = frame_of(compare(read, replicates=20, by="part")._repr_html_())
    assert "base [part=odd]" not in page
    assert page.count('<th scope="row"><svg') == 2


def test_a_comparison_can_be_kept_light(comparison, monkeypatch):
    monkeypatch.setenv(notebook.SETTING, "static")
    shown = comparison._repr_html_()
    assert "<iframe" not in shown
    assert "data:image/svg+xml;base64," in shown
    assert len(shown) < MOST


def test_figures_can_be_left_out(comparison, evaluations, monkeypatch):
    monkeypatch.setenv(notebook.SETTING, "text")
    for result in (comparison, evaluations):
        shown = result._repr_html_()
        assert "<iframe" not in shown
        assert "<img" not in shown
        assert "<table>" in shown


def test_a_setting_that_is_none_is_refused(evaluations, monkeypatch):
    monkeypatch.setenv(notebook.SETTING, "loud")
    with pytest.raises(UsageError, match=r'DEMUR_NOTEBOOK is "static", "text" or not set; got "loud"'):
        evaluations._repr_html_()


def test_other_results_show_a_described_picture_beside_their_words(evaluations, comparison, choice):
    for result in (evaluations, evaluations[0], evaluations[0].curve, comparison.pairs[0], choice):
        shown = result._repr_html_()
        (about,) = re.findall(r'<img alt="([^"]+)" src="data:image/svg\+xml;base64,', shown)
        assert len(about) > 40
        assert shown.endswith("</div>")
        assert len(shown) < MOST


def test_a_picture_of_very_many_marks_is_a_png(evaluations, monkeypatch):
    monkeypatch.setattr(notebook, "MOST_SVG", 1000)
    assert 'src="data:image/png;base64,' in notebook.picture(error_return_chart(evaluations))


def test_without_the_extra_for_figures_words_and_tables_stand_alone(comparison, evaluations, monkeypatch):
    def missing(name):
        raise UsageError(f"{name}: figures need the extra: pip install 'demur[plots]'")

    for place in ("core.show.html", "returns.presentation"):
        monkeypatch.setattr(f"demur.{place}.import_module", missing)
    for result in (comparison, evaluations):
        shown = result._repr_html_()
        assert "<img" not in shown
        assert "<iframe" not in shown
        assert "<table>" in shown
