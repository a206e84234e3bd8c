"""Every sink hears of the end, and what fails there is told."""

from __future__ import annotations

from esault import Sink
from esault.flow.send.end_sinks import end_sinks
from esault.topology.plan import SinkPlan


class Ending(Sink):
    ended = None

    def __init__(self, broken=False):
        self.broken = broken

    def end(self, ok):
        self.ended = (ok, self.repeated)
        if self.broken:
            raise OSError("the catalogue is not there")


def test_a_sink_that_cannot_end_is_told_and_keeps_nobody_from_it(capsys):
    sinks = [Ending(broken=True), Ending()]
    end_sinks([SinkPlan(name, sink) for name, sink in zip("ab", sinks)], ok=True, repeated=False)
    assert [sink.ended for sink in sinks] == [(True, False)] * 2
    told = capsys.readouterr().err
    assert "sink 'a', end: OSError: the catalogue is not there" in told and "in end" in told
