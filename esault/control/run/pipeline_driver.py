"""Micro-batch pipelines in the engine: windows of spouts come in, units are changed, slices are released.

A policy with pipelines says what the rate of each slice asks for; `Pipelines` groups them and says what comes next. The windows
that all spouts have closed go through together, under one sequence of configurations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from esault.control.run.pipelines import Do, Pipelines, Slice
from esault.elasticity.judge import Judge
from esault.elasticity.policies.orientstream.configuration import Configuration
from esault.errors import UsageError
from esault.messages.control import ReleaseSlices
from esault.messages.status import MicroBatch, Status
from esault.topology.plan import Plan
from esault.topology.windowed_spout import WindowedSpout

__all__ = ["PipelineDriver"]

#: longest time of a change, milliseconds, until one was measured; the paper's
FIRST_CHANGE_MS = 300
#: of so many changes of a unit the longest counts
RECENT = 8
#: share of a window for which the other spouts' windows are waited for
TOGETHER = 0.1
#: groupings that are kept; the oldest go first
MOST = 1000


class PipelinePolicy(Protocol):
    """A policy with pipelines: it has this besides `decide`, which then changes nothing."""

    pipelines: bool
    #: share of their time that sub-units should be busy
    target: float

    def configuration(self, rate: float) -> Configuration | None:
        """Return the configuration for sources that offer `rate` tuples a second; None: it cannot tell yet."""
        ...


@dataclass
class _Batch:
    """Windows that go through together."""

    #: by the spout's sub-unit: its window, and the slices that were not released
    windows: dict[int, tuple[int, set[int]]] = field(default_factory=dict)


class PipelineDriver:
    """The pipelines of a run, driven by what its spouts say; it does nothing where no policy has pipelines."""

    def __init__(
        self,
        plan: Plan,
        judges: Mapping[str, Judge],
        scale: Callable[[str, int, float, str, str], object],
        tell: Callable[[int, Any], None],
    ) -> None:
        """`scale` changes a unit (name, sub-units, time, reason, policy) or raises UsageError; `tell` sends to a sub-unit.

        Where policies have pipelines it is one, for all of its units, and a spout collects windows: `check_policies` saw to it.
        """
        self._scale, self._tell = scale, tell
        self.pipelines: Pipelines | None = None
        chosen = next((judge for judge in judges.values() if getattr(judge.policy, "pipelines", False)), None)
        if chosen is None:
            return
        self._judge = chosen
        policy: Any = self._judge.policy
        self._policy: PipelinePolicy = policy
        self._spouts = {u.name: u.spout for u in plan.units.values() if isinstance(u.spout, WindowedSpout)}
        self._window = max(spout.window for spout in self._spouts.values())
        self.pipelines = Pipelines(
            self._wanted, round(1000 * self._window), FIRST_CHANGE_MS, load=min(policy.target, 0.99)
        )
        self._commands: dict[float, Configuration | None] = {}
        #: by sub-unit of a spout: the unit, and what it said last
        self._said: dict[int, tuple[str, MicroBatch]] = {}
        self._batch: _Batch | None = None
        #: since when a window waits for others
        self._since: float | None = None

    def status(self, unit: str, message: Status) -> None:
        """Note the progress of a spout's window, as one of its sub-units says it."""
        if self.pipelines is None or message.micro_batch is None or unit not in self._spouts:
            return
        known = message.incarnation in self._said
        self._said[message.incarnation] = (unit, message.micro_batch)
        if not known:
            self._tell(message.incarnation, ReleaseSlices(-1, ()))

    def step(self, units: Mapping[str, Any], now: float) -> None:
        """Do what can be done now; called when something has been said, and now and then."""
        if self.pipelines is None or not self._said:
            return
        for incarnation in [i for i, (unit, _) in self._said.items() if i not in units[unit].subs]:
            del self._said[incarnation]
        self._drop_gone()
        names = self._judge.names
        while True:
            if self._batch is None and not self._begin(units, now):
                return
            changing = any(units[name].change is not None or units[name].changing for name in names)
            do = self.pipelines.advance(self._current(units), changing, self._under_way())
            if do == Do():
                return
            for name, width in do.rescale:
                reason = f"the next of {len(self.pipelines.groupings[-1].pipelines)} pipelines of this window"
                try:
                    self._scale(name, width, now, reason, self._judge.policy_name)
                except UsageError:
                    pass  # what was collected goes on as the units are, which `missed` counts
            if do.release is not None:
                self._release(do.release[1])
            if do.ended is not None:
                self._batch = None

    def _current(self, units: Mapping[str, Any]) -> Configuration:
        return Configuration(tuple((name, units[name].width) for name in self._judge.names))

    def _wanted(self, rate: float) -> Configuration | None:
        """Return the configuration for a rate, rounded up to two digits: slices that hardly differ are one pipeline."""
        digit = 10.0 ** (math.floor(math.log10(rate)) - 1)
        rounded = math.ceil(rate / digit - 1e-9) * digit
        if rounded not in self._commands:
            self._commands[rounded] = self._policy.configuration(rounded)
        return self._commands[rounded]

    def _begin(self, units: Mapping[str, Any], now: float) -> bool:
        """Begin the next windows if all are there, or were waited for long enough, and return whether they have begun."""
        pipelines = self.pipelines
        assert pipelines is not None
        ready = {i: said.window for i, (_, said) in self._said.items() if said.slices}
        if not ready:
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        if len(ready) < len(self._said) and now < self._since + TOGETHER * self._window:
            return False
        self._since = None
        rates: dict[int, float] = {}
        self._batch = _Batch()
        for incarnation, window in ready.items():
            unit, said = self._said[incarnation]
            for number, rows in said.slices:
                rates[number] = rates.get(number, 0.0) + rows / self._spouts[unit].slice
            self._batch.windows[incarnation] = (window, {number for number, _ in said.slices})
        self._commands.clear()
        pipelines.change_ms = self._change_ms(units)
        pipelines.close([Slice(number, rate) for number, rate in sorted(rates.items())], self._current(units))
        del pipelines.groupings[:-MOST]
        return True

    def _change_ms(self, units: Mapping[str, Any]) -> int:
        """Return the longest time that a change took of late."""
        took = [c.seconds for name in self._judge.names for c in units[name].changes[-RECENT:] if not c.dropped]
        return max(1, math.ceil(1000 * max(took))) if took else FIRST_CHANGE_MS

    def _release(self, slices: tuple[int, ...]) -> None:
        assert self._batch is not None
        for incarnation, (window, held) in self._batch.windows.items():
            own = tuple(number for number in slices if number in held)
            held.difference_update(own)
            if own:
                self._tell(incarnation, ReleaseSlices(window, own))

    def _drop_gone(self) -> None:
        """Wait no longer for spouts that died, or that waited too long and went on by themselves."""
        if self._batch is None:
            return
        assert self.pipelines is not None
        for incarnation, (window, held) in list(self._batch.windows.items()):
            said = self._said.get(incarnation)
            if said is None or (held and said[1].window != window):
                del self._batch.windows[incarnation]
                if said is not None:
                    self._tell(incarnation, ReleaseSlices(-1, ()))
        if not self._batch.windows:
            self._batch = None
            self.pipelines.give_up()

    def _under_way(self) -> bool:
        """Return whether something that was released is not processed yet."""
        assert self._batch is not None
        for incarnation, (window, held) in self._batch.windows.items():
            said = self._said[incarnation][1]
            if said.window == window and any(number not in held for number, _ in said.slices):
                return True  # it has not heard of it yet
            if said.under_way:
                return True
        return False
