import gzip
import math

import pytest

from demur.errors import DataError
from demur.nbest_lists.asr.lattices import network, posteriors, read_lattice
from demur.nbest_lists.asr.networks import nbest

ON_ARCS = """\
VERSION=1.0
UTTERANCE=u1
# made by hand
lmscale=2.0 wdpenalty=-1.0 acscale=0.5
N=3 L=3
I=0 t=0.00
I=1 t=0.40
I=2 t=1.00
J=0 S=0 E=1 W=thai a=-4.0 l=-0.5 v=1
J=1 S=0 E=1 W=!NULL a=-8.0
J=2 S=1 E=2 W=food a=-2.0 n=-1.0 r=-0.25
"""

ON_NODES = """\
V=1.0
N=4 L=3
I=0 t=0.00 W=!NULL
I=1 t=0.40 W=thai
I=2 t=0.40 W="tie"
I=3 t=1.00 W=!NULL
J=0 START=0 END=1 acoustic=-1.0
J=1 S=0 E=2 a=-1.0
J=2 S=1 E=3 a=0
J=3 S=2 E=3 a=0
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="u1.lat"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["u1.lat", "u1.slf", "u1.lat.gz"])
def test_scores_are_scaled_as_the_header_says(written, name):
    lattice = read_lattice(written(ON_ARCS, name))
    assert [arc.word for arc in lattice.arcs] == ["thai", "", "food"]
    # thai: 0.5 * -4 + 2 * -0.5 - 1; no word, no penalty: 0.5 * -8; food: 0.5 * -2 + 2 * -1 - 0.25 - 1
    assert [arc.score for arc in lattice.arcs] == pytest.approx([-4, -4, -4.25])
    assert (lattice.start, lattice.end, lattice.times) == (0, 2, {0: 0.0, 1: 0.4, 2: 1.0})


def test_scales_may_be_given_instead(written):
    lattice = read_lattice(written(ON_ARCS), acscale=1.0, lmscale=0.0, wdpenalty=0.0)
    assert [arc.score for arc in lattice.arcs] == pytest.approx([-4, -8, -2.25])


def test_words_on_nodes_are_those_of_the_arcs_that_lead_there(written):
    lattice = read_lattice(written(ON_NODES.replace("L=3", "L=4")))
    assert [(arc.start, arc.end, arc.word) for arc in lattice.arcs] == [
        (0, 1, "thai"),
        (0, 2, "tie"),
        (1, 3, ""),
        (2, 3, ""),
    ]
    assert dict(network(lattice).slots[0]) == pytest.approx({"thai": 0.5, "tie": 0.5})


@pytest.mark.parametrize(("base", "score"), [("10", -1.0), ("2.718281828459045", -math.log(10)), ("0", 0.1)])
def test_scores_are_read_in_the_base_of_the_file(written, base, score):
    lattice = read_lattice(written(f"base={base}\nI=0\nI=1\nJ=0 S=0 E=1 W=a a={score}\n"))
    assert lattice.arcs[0].score == pytest.approx(-math.log(10))


def test_escaped_and_quoted_words_are_read(written):
    text = 'I=0\nI=1\nJ=0 S=0 E=1 W=\\\'em\nJ=1 S=0 E=1 W="new york"\nJ=2 S=0 E=1 W=caf\\303\\251\n'
    assert [arc.word for arc in read_lattice(written(text)).arcs] == ["'em", "new york", "café"]


def test_without_times_the_lattice_has_none(written):
    lattice = read_lattice(written(ON_ARCS.replace("I=1 t=0.40", "I=1")))
    assert lattice.times is None
    assert nbest(network(lattice), 1)[0].text == "food"


def test_start_and_end_may_be_named(written):
    lattice = read_lattice(written(ON_ARCS.replace("N=3", "start=0 end=1 N=3")))
    assert (lattice.start, lattice.end) == (0, 1)
    assert posteriors(lattice) == pytest.approx([0.5, 0.5, 0.0])


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("J=2 S=1 E=2", "J=2 S=1 E=7", r"u1.lat:11: E must be a node of the lattice; got 7 \(add a line I=7\)"),
        ("J=2 S=1 E=2", "J=2 E=2", "u1.lat:11 must have a field S="),
        ("J=2 S=1", "J=2 S=one", 'u1.lat:11: S must be a whole number; got "one"'),
        ("a=-2.0", "a=low", 'u1.lat:11: a must be a number; got "low"'),
        ("a=-2.0", "a=nan", 'u1.lat:11: a must be a number; got "nan"'),
        ("J=2 S=1 E=2", "J=2 S=1 E=0", r"u1.lat must not have a cycle; got \"nodes 0 -> 1 -> 0\""),
        ("J=2 S=1 E=2", "J=2 S=0 E=2", r"must have one node that no arc leads out of; got \"nodes 1, 2\" .*end="),
        ("I=2 t=1.00\n", "", r"u1.lat must have N=3 nodes; got 2 \(is the file cut off"),
        ("I=2 t=1.00", "I=1 t=1.00", "u1.lat:8: node must not be there twice; got 1"),
        ("I=2 t=1.00", "I=2 t=1.00 L=digits", "u1.lat:8: node 2 must not be a sub-lattice"),
        ("# made by hand", "made by hand", 'u1.lat:3 must be fields name=value; got "made by hand"'),
        ("acscale=0.5", "base=1", "u1.lat: base must be 0 or a base of logarithms; got 1"),
        ("acscale=0.5", "start=2 end=0", "must lead from node 2 to node 0"),
        ("acscale=0.5", "base=0", "u1.lat:9: a must be a probability where base=0; got -4"),
    ],
)
def test_a_fault_names_file_and_line(written, old, new, fault):
    with pytest.raises(DataError, match=fault):
        read_lattice(written(ON_ARCS.replace(old, new)))


def test_a_file_without_arcs_is_refused(written):
    with pytest.raises(DataError, match=r"u1.lat must have arcs \(lines that begin with J="):
        read_lattice(written("N=1\nI=0\n"))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none.lat does not exist"):
        read_lattice(tmp_path / "none.lat")


def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "u1.lat.gz"
    path.write_bytes(gzip.compress(ON_ARCS.encode())[:-12])
    with pytest.raises(DataError, match="cut off or damaged"):
        read_lattice(path)


def test_a_node_without_any_arc_and_an_arc_numbered_twice_are_refused(tmp_path):
    path = tmp_path / "u.lat"
    nodes = "".join(f"I={node} t={node / 10}\n" for node in range(4))
    path.write_text(nodes + "J=0 S=0 E=1 W=thai\nJ=1 S=1 E=2 W=food\n")
    with pytest.raises(DataError, match=r"must have an arc to every node; got .none to node 3"):
        read_lattice(path)
    path.write_text(nodes + "J=0 S=0 E=1 W=a\nJ=0 S=1 E=2 W=b\nJ=1 S=2 E=3 W=c\n")
    with pytest.raises(DataError, match=r"u\.lat:6: arc must not be there twice; got 0"):
        read_lattice(path)
