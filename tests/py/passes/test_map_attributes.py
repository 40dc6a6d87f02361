"""Maps of attributes: one that a pass makes is not parsed by the next, and is what its text says."""

import pytest

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.attributes import map_attribute, map_of
from xgpu.indexing.indexing_map import IndexingMap

_TEXT = "(d0)[s0] -> (d0 floordiv 4, (d0 mod 4) * 2 + s0), d0 in [0, 63], s0 in [0, 1], d0 + s0 in [0, 50]"


@pytest.fixture(autouse=True)
def _no_maps(monkeypatch):
    monkeypatch.setattr(attributes, "_maps", {})


def test_a_map_that_was_made_is_not_parsed():
    with ir.make_context():
        made = IndexingMap.parse(_TEXT)
        assert map_of(map_attribute(made)) is made


def test_a_map_that_was_read_is_the_one_that_was_made():
    with ir.make_context():
        made = map_attribute(IndexingMap.parse(_TEXT))
        attributes._maps.clear()
        assert map_of(ir.Attribute.parse(str(made))) == IndexingMap.parse(_TEXT)


def test_maps_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(attributes, "_MOST_MAPS", 4)
    with ir.make_context():
        for size in range(1, 20):
            map_attribute(IndexingMap.parse(f"(d0) -> (d0), d0 in [0, {size}]"))
            assert len(attributes._maps) <= 4
