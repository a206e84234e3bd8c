"""Keys that a `BatchBolt` puts into `keyed` long after its first batch, and that belong to no sub-unit."""

from __future__ import annotations

import pytest

from esault import BatchBolt, Topology, TopologyFailed, by_key, shuffle
from esault.messages.settings import Settings
from esault.sources import Items, Paced
from esault.testing import LocalRuntime

ROWS = [(f"k{i % 7}", 1) for i in range(30)]


class Odd(BatchBolt):
    """Counts all of its rows under one key more, once it has had some."""

    odd: object = None

    def __init__(self):
        self.rows = 0

    def process_batch(self, rows):
        self.rows += len(rows)
        for key, n in rows:
            self.keyed[key] = self.keyed.get(key, 0) + n
        if self.rows > 10:
            self.keyed[self.odd] = self.rows
        self.emit_batch([("rows", self.rows)])


def run(odd, grouping):
    t = Topology("odd")
    cls = type("OddOne", (Odd,), {"odd": odd})
    t.spout("rows", Paced(Items(ROWS), rate=2)).bolt("count", cls, grouping=grouping)
    local = LocalRuntime(t, settings=Settings(delivery="eo", checkpoint_every=2))
    local.run_until_drained()
    return local


@pytest.mark.parametrize(
    ("odd", "text"),
    [
        (None, "None belongs to no sub-unit; use a text, such as 'all'"),
        (2.5, r"float cannot be a key: .*; use str\(key\)"),
        (frozenset("a"), r"frozenset cannot be a key: .*; use tuple\(sorted\(key\)\)"),
    ],
)
def test_they_are_refused_with_the_next_checkpoint_and_not_when_a_run_goes_on_from_it(odd, text):
    with pytest.raises(TopologyFailed, match=rf"unit 'count': a key in OddOne\.keyed cannot be moved or saved: {text}"):
        run(odd, by_key())


@pytest.mark.parametrize(("odd", "grouping"), [(("all", None), by_key()), (None, shuffle())])
def test_others_are_kept(odd, grouping):
    assert run(odd, grouping).emitted("count")[-1] == ("rows", 30)
