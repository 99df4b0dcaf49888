"""Files that were valid before something in them was changed: what readers must refuse in one sentence, or read."""

import io
import json
import zipfile
from copy import deepcopy

from hypothesis import strategies as st

DEEP = json.loads("[" * 60 + "]" * 60)
ODD = [None, True, -1, 0, 1, 2.5, -0.0, 1e308, 2**53, 2**63, 10**30, "", "x", "x" * 3000, "\0\u202e", [], {}, [1], DEEP]
"""Values that stand where others should."""


def _places(document, path=()):
    yield path
    pairs = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in pairs:
        yield from _places(value, (*path, key))


def _changed(document, path, value):
    if not path:
        return value
    whole = deepcopy(document)
    part = whole
    for key in path[:-1]:
        part = part[key]
    if value is ...:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return whole


def changed_json(document):
    """The document with one of its values changed for another, doubled, or left out, as bytes."""
    places = list(_places(document))
    values = st.one_of(st.sampled_from([*ODD, ...]), st.integers(-(2**70), 2**70), st.floats())
    pairs = st.tuples(st.sampled_from(places), values).filter(lambda pair: pair[0] or pair[1] is not ...)
    return pairs.map(lambda pair: json.dumps(_changed(document, *pair)).encode())


def changed_bytes(content):
    """The bytes with some of them changed, or cut off."""
    place = st.integers(0, len(content) - 1)
    flips = st.lists(st.tuples(place, st.integers(1, 255)), min_size=1, max_size=3)

    def flipped(changes):
        spoilt = bytearray(content)
        for where, by in changes:
            spoilt[where] ^= by
        return bytes(spoilt)

    return st.one_of(flips.map(flipped), place.map(lambda end: content[:end]))


def unzipped(content):
    """The members of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts):
    """An archive of members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def changed_zip(content, document=None):
    """The archive with a member changed, swapped for another or left out, or its JSON `document` changed."""
    parts = unzipped(content)
    names = st.sampled_from(sorted(parts))
    ways = [
        names.flatmap(lambda name: changed_bytes(parts[name]).map(lambda part: zipped({**parts, name: part}))),
        st.tuples(names, names).map(lambda pair: zipped({**parts, pair[0]: parts[pair[1]], pair[1]: parts[pair[0]]})),
        names.map(lambda left: zipped({name: part for name, part in parts.items() if name != left})),
        changed_bytes(content),
    ]
    if document is not None:
        ways.append(changed_json(json.loads(parts[document])).map(lambda part: zipped({**parts, document: part})))
    return st.one_of(ways)
