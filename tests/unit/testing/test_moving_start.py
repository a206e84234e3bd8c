"""A run whose source begins at a place that moves loses nothing where it goes back before a checkpoint was due."""

from __future__ import annotations

import pytest
from counting import Landed

from esault import Bolt, Spout, Topology, by_key
from esault.messages.settings import Settings
from esault.sources import JsonFiles, MicroBatches, Paced, TextFiles
from esault.testing import LocalRuntime

SELDOM = Settings(delivery="eo", checkpoint_every=5)


class Newest(Spout):
    """Messages that come from when it was opened on."""

    moving_start = True

    def __init__(self, messages):
        self.messages = messages

    def open(self, context):
        self.next = len(self.messages)

    def read(self, limit):
        rows = [("k", n) for n in self.messages[self.next : self.next + limit]]
        self.next += len(rows)
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position

    def __deepcopy__(self, memo):
        made = type(self)(self.messages)  # the broker is one
        made.moving_start = self.moving_start
        return made


class Seen(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def run(spout):
    t = Topology("moving")
    t.spout("rows", spout).bolt("seen", Seen, by_key()).sink("out", Landed())
    return LocalRuntime(t, settings=SELDOM)


@pytest.mark.parametrize("moves", [True, False])
def test_a_run_goes_back_to_where_it_began_and_not_to_where_it_would_begin_now(moves):
    messages = [0, 1]
    spout = Newest(messages)
    spout.moving_start = moves
    local = run(spout)
    local.run_for(1)
    messages += [2, 3]
    local.run_for(1)
    local.kill(local.sub_units("seen")[0])
    messages += [4]
    local.run_for(20)
    assert [row.value for row in local.landed("out")] == ([2, 3, 4] if moves else [])


@pytest.mark.parametrize("around", [lambda spout: Paced(spout, 100), lambda spout: MicroBatches(spout, 1.0)])
def test_a_source_around_another_begins_where_that_one_does(around):
    assert around(Newest([])).moving_start
    fixed = Newest([])
    fixed.moving_start = False
    assert not around(fixed).moving_start


@pytest.mark.parametrize("source", [TextFiles, JsonFiles])
def test_a_log_that_was_rotated_before_the_first_checkpoint_was_due_is_read_again(tmp_path, source):
    log = tmp_path / "app.log"
    log.write_text('{"n": 1}\n{"n": 2}\n')
    local = run(source(log, follow=True))
    local.run_until(lambda: len(local.emitted("seen")) == 2)
    local.run_for(1)
    log.rename(tmp_path / "app.log.1")
    log.write_text('{"n": 3}\n')
    local.kill(local.sub_units("seen")[0])
    local.run_for(20)
    landed = [
        value if isinstance(value, str) else f'{{"n": {value["n"]}}}'
        for value in (r.value for r in local.landed("out"))
    ]
    assert landed == ['{"n": 1}', '{"n": 2}', '{"n": 3}']
