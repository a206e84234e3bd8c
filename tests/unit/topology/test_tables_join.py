"""Two tables, of which the newest values of a key make a third."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.topology.join import LEFT, RIGHT
from esault.topology.tables_join import TablesJoin
from tests.unit.topology.operators.recorded import recorded

changes = st.lists(st.tuples(st.sampled_from([LEFT, RIGHT]), st.sampled_from([None, 0, "", 1])), max_size=12)
KINDS = {
    "inner": lambda left, right: left is not None and right is not None,
    "left": lambda left, right: left is not None,
    "right": lambda left, right: right is not None,
    "outer": lambda left, right: left is not None or right is not None,
}


@pytest.mark.parametrize("kind", KINDS)
@given(changes, st.integers(0, 12))
def test_whoever_keeps_the_newest_of_what_is_emitted_has_the_third_table(kind, changes, cut):
    bolt = recorded(TablesJoin, kind)
    left = right = None
    for number, (stream, value) in enumerate(changes):
        if number == cut:  # it goes to another process
            moved = recorded(TablesJoin, kind)
            moved.__setstate__(bolt.__getstate__())
            moved.out, bolt = bolt.out, moved
        was, before = KINDS[kind](left, right), len(bolt.out)
        left, right = (value, right) if stream == LEFT else (left, value)
        bolt.process_stream(stream, bolt.key, value)
        now = KINDS[kind](left, right)
        emitted = [each for each, _ in bolt.out[before:]]
        assert emitted == ([(left, right)] if now else [None] if was else [])
