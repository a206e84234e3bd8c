"""Windows step by step, as peers' test harnesses run them: a tuple, a watermark, and what came out."""

from __future__ import annotations

from esault import Bolt, Topology
from esault.flow.operators.emitter import Emitter
from esault.flow.operators.factory import operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.pane_operator import PaneOperator
from esault.flow.operators.window_operator import WindowOperator
from esault.payload.codec import Codec
from esault.sources import Items
from esault.testing import ManualClock
from esault.topology.context import Context


class Sum(Bolt):
    """Emits (start, end, sum)."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value["n"]

    def finish(self):
        self.emit(self.key, (*self.window, self.total))


class Rows(Bolt):
    """Emits (start, end, rows in the order in which they came)."""

    def __init__(self):
        self.rows = ()

    def process(self, key, value):
        self.rows = (*self.rows, value["n"])

    def finish(self):
        self.emit(self.key, (*self.window, self.rows))


class Panes(Bolt):
    """Emits (start, end, values in the order in which they came, kind and number of the pane, whether it is the last)."""

    def __init__(self):
        self.values = ()

    def process(self, key, value):
        self.values = (*self.values, value["n"])

    def finish(self):
        self.emit(self.key, (*self.window, self.values, *self.pane))


class Steps:
    """The windows of one sub-unit. With `moving`, all state goes through bytes to a new owner before each step."""

    def __init__(self, moving, window, bolt=Sum, **options):
        self._moving = moving
        if window.timed and options.get("by") != "processing":
            options = {"time": lambda value: value["at"], **options}
        t = Topology("steps")
        t.spout("rows", Items([])).window("w", bolt, window, **options)
        self.clock = ManualClock(0.0)
        self.plan = t.plan().units["w"]
        self._streams = list(self.plan.streams)
        self._begin()
        self.late = 0

    def _begin(self):
        self._emitter = Emitter("w", self._streams, 0, False, Codec())
        context = Context(unit="w", now=self.clock)
        parameters = OperatorParameters(self.plan, context, self._emitter, Codec(), None, self.clock())
        made = operator(parameters)
        assert isinstance(made, WindowOperator)
        self.operator = made

    def _step(self):
        if not self._moving:
            return
        old = self.operator.state
        states = [(name and old.key_of(name), old.peek(name)) for name in old.saved_names()]
        self.late += self.operator.late
        self._begin()
        for key, state in states:
            if state is not None:
                self.operator.state.install_state(key, state)

    def give(self, key, at=None, n=1):
        """A tuple; what comes out of it."""
        self._step()
        self.operator.run(0, [key], [{"at": at, "n": n}], None)
        return self._take()

    def watermark(self, at):
        """No tuple before this time is expected; what comes out."""
        self._step()
        self.operator.advance(at)
        while self.operator.close_some(1, 1, None):
            pass
        return self._take()

    def at(self, now):
        """It is so late by the clock; what comes out."""
        self._step()
        self.clock.advance_to(now)
        assert isinstance(self.operator, PaneOperator)
        while self.operator.due_now(now) is not None:
            self.operator.fire_now()
        return self._take()

    def end(self):
        """There are no more; what comes out."""
        self._step()
        for _ in self.operator.finishing():
            pass
        return self._take()

    def _take(self):
        """Of the main stream (key, value), of others (stream, key, value)."""
        found = []
        for stream, keys, values, _ in self._emitter.pop_emitted(False):
            found += zip(keys, values) if not stream else zip([stream] * len(keys), keys, values)
        return found

    @property
    def dropped(self):
        """How many tuples were late."""
        return self.late + self.operator.late
