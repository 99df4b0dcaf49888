"""Documents of one format keep their keys: scripts that read them go on working."""

import pytest

from golden.shapes import missing, promised_shapes, recorded_shapes

RECORDED = recorded_shapes()


@pytest.mark.parametrize("command", sorted(promised_shapes()))
def test_no_key_that_the_format_promises_is_missing(command):
    lacking = list(missing(promised_shapes()[command], RECORDED[command]))
    assert not lacking, f"{command}: keep these keys, or raise JSON_FORMAT: {lacking}"


def test_every_recorded_command_has_promised_its_keys():
    assert set(RECORDED) == set(promised_shapes()), "make golden adds what is new"
    assert all(promised_shapes().values())


def test_a_key_that_is_gone_is_named_by_its_path():
    promised = {"systems": {"[]": {"n": {}, "name": {}}}}
    assert list(missing(promised, {"systems": {"[]": {"n": {}}}})) == ["systems.[].name"]
    assert list(missing(promised, {"systems": {}})) == []
