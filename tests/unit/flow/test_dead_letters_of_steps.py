"""Dead letters of function steps: durable before their batch is acked, together with the others of the batch."""

import pytest

from esault import Bolt, Topology, TopologyFailed, dead_letter, shuffle
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime


class Disk:
    """Counts what is written, and when it is made durable."""

    def __init__(self):
        self.put_so_far = self.durable = self.syncs = 0

    def put(self, record):
        self.put_so_far += 1

    def sync(self):
        self.durable = self.put_so_far
        self.syncs += 1


def refused(value):
    if value == "end":
        raise LookupError(value)
    raise ValueError(value)


def failing(value):
    return value if value == "end" else refused(value)


def ended(value):
    return refused(value)


@pytest.fixture
def disk(monkeypatch):
    made = Disk()
    monkeypatch.setattr("esault.testing.memory_connectors.DeadLetterList", lambda: made)
    return made


class Passes(Bolt):
    def process(self, key, value):
        self.emit(key, value)


@pytest.mark.parametrize("behind_a_bolt", (False, True))
def test_those_of_a_batch_are_made_durable_at_once(disk, behind_a_bolt):
    t = Topology("t")
    stream = t.spout("s", Items([(None, n) for n in range(200)]))
    if behind_a_bolt:
        stream = stream.bolt("passes", Passes, grouping=shuffle(), chain=False)
    stream.map(refused, on_error=dead_letter("d.jsonl")).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert disk.durable == 200
    assert disk.syncs <= 20


def test_those_before_a_row_that_ends_the_run_are_durable(disk):
    t = Topology("t")
    rows = [(None, n) for n in range(50)] + [(None, "end")]
    t.spout("s", Items(rows)).map(failing, on_error=dead_letter("d.jsonl")).map(ended).sink("out", Collect())
    local = LocalRuntime(t)
    with pytest.raises(TopologyFailed, match="end"):
        local.run_until_drained()
    assert disk.durable == disk.put_so_far == 50
