"""The policy `ds2`: all operators in one step, from rates that operators would have if they never waited.

Kalavri, Liagouris, Hoffmann, Dimitrova, Forshaw, Roscoe: Three steps is all you need: fast, accurate, automatic scaling
decisions for distributed streaming dataflows, OSDI 2018. An operator's *true* rates count its useful time W_u only:
true processing rate = processed / W_u (1), true output rate = emitted / W_u (2), summed over its instances (5), (6).
From the sources on, with p_i instances now and A the adjacency of the graph:

    pi_i = ceil( sum_j A_ji * o_j[lambda_o]*  /  (o_i[lambda_p] / p_i) )                           (7)
    o_j[lambda_o]* = the source's rate, or  o_j[lambda_o] / o_j[lambda_p] * sum_u A_uj * o_u[lambda_o]*    (8)

The walk, the parameters and their defaults were read in the authors' code (github.com/strymon-system/ds2, controller/);
the numbers of the equations are quoted and were not checked against the paper's text.

Our readings: a source's rate is what was read plus the growth of what was due and not read; where the latter is
unknown, it is what was read. Work is taken to be shared evenly, so that true processing rate / p_i = tuples processed /
seconds of useful time (`useful_time` says what that is here). As in the paper's model every receiver gets all that a
sender emits: an operator with different streams to different receivers is overrated. One that processed nothing while
something is due for it is left as it is, with its last known rates downstream. Sources are not scaled.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from esault.elasticity.action import Action, Rescale
from esault.elasticity.estimators.useful_time import UsefulTime
from esault.elasticity.limits import above_zero, granted
from esault.elasticity.view import RunView, UnitWindow
from esault.errors import UsageError

__all__ = ["DS2"]

#: a share of a sub-unit that is lost in floating point, and not worth another
_DUST = 1e-9


@dataclass
class DS2:
    """Parameters by the names of the authors' configuration, ds2.toml."""

    #: seconds of one window of measuring, after each of which the model is asked
    policy_interval: float = 10.0
    #: so many windows in a row must ask for a change (the authors' code counts windows; that they agree is our reading)
    activation_time: int = 1
    #: so many windows after a change are ignored, and at the start
    warm_up_time: int = 2
    #: when a source reads less than its rate by more than this ratio although no operator is too narrow, all are widened by
    #: that ratio; 1 or more, 0: never (the authors' default)
    target_rate_ratio: float = 0.0
    #: so much more than the model says, as a share of it
    scaling_factor: float = 0.0
    #: a shrinking alone is worth a change if some unit loses so many sub-units (in the authors' code: 2)
    least_drop: int = 2
    #: how the widths of `activation_time` windows become one
    combine: str = field(default="max", metadata={"choices": ("max", "median")})
    #: of the engine: length of the aligned windows
    period: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        above_zero("ds2", policy_interval=self.policy_interval, activation_time=self.activation_time)
        above_zero("ds2", least_drop=self.least_drop)
        if 0 < self.target_rate_ratio < 1:
            raise UsageError(
                f"policy 'ds2': target_rate_ratio={self.target_rate_ratio:g} must be 1 or more, or 0 for never"
            )
        self.period = self.policy_interval
        self._windows = 0
        self._useful = UsefulTime()
        self._asked: deque[dict[str, int]] = deque(maxlen=self.activation_time)
        #: unit -> tuples that it emits for one that it takes, when last known
        self._ratios: dict[str, float] = {}

    def decide(self, view: RunView) -> Sequence[Action]:
        """One window: the widths of all managed units, or nothing."""
        units = view.units.values()
        if any(u.changing for u in units):
            self._windows = 0
            return ()
        windows = {u.name: u.window for u in units if u.window is not None and u.window.seconds > 0}
        if len(windows) < len(view.units):
            return ()
        if any(u.changed_at is not None and u.changed_at > windows[u.name].start for u in units):
            self._windows = 0
        if self._windows < self.warm_up_time:
            self._windows += 1
            self._asked.clear()
            return ()
        targets, rates, wanted = self._model(view, windows)
        if not self._worth(view, wanted):
            self._asked.clear()
            return ()
        self._asked.append(wanted)
        if len(self._asked) < self.activation_time:
            return ()
        wanted = granted(view, {name: self._combined(name) for name in wanted})
        if not self._worth(view, wanted):
            return ()
        actions = []
        for name, n in wanted.items():
            if n != view.units[name].width:
                reason = "nothing is due"
                if name in rates:
                    reason = f"{targets[name]:,.1f}/s are due and one sub-unit does {rates[name]:,.1f}/s"
                actions.append(Rescale(f"{reason}: {n} rather than {view.units[name].width}", n, unit=name))
        if actions:
            self._asked.clear()
            self._windows = 0
        return actions

    def _model(
        self, view: RunView, windows: Mapping[str, UnitWindow]
    ) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
        """Tuples a second due for each unit; true rates of one sub-unit, and widths of the managed ones, not bounded yet."""
        targets: dict[str, float] = {}
        rates: dict[str, float] = {}
        out: dict[str, float] = {}
        wanted: dict[str, int] = {}
        held_back = 1.0
        for name, window in windows.items():
            senders = view.senders.get(name, ())
            source = not senders
            taken = window.arrivals if source else window.processed
            targets[name] = window.offered if source else sum(out[s] for s in senders)
            if source and taken > 0:
                held_back = max(held_back, targets[name] * window.seconds / taken)
            if taken > 0:
                self._ratios[name] = window.emitted / taken
            out[name] = targets[name] * self._ratios.get(name, 1.0)
            if name not in view.managed:
                continue
            useful = self._useful.share(view.units[name]) * window.seconds * max(1, view.units[name].width)
            if window.processed > 0 and useful > 0:
                rates[name] = window.processed / useful
                instances = targets[name] / rates[name]
                wanted[name] = max(1, math.ceil(instances * (1.0 + self.scaling_factor) - _DUST))
            else:
                wanted[name] = view.units[name].width if targets[name] > 0 else 1
        wider = any(n > view.units[name].width for name, n in wanted.items())
        if self.target_rate_ratio and held_back > self.target_rate_ratio and not wider:
            wanted = {name: math.ceil(held_back * n - _DUST) for name, n in wanted.items()}
        return targets, rates, wanted

    def _worth(self, view: RunView, wanted: Mapping[str, int]) -> bool:
        """Some unit grows, or one shrinks by enough."""
        changes = [n - view.units[name].width for name, n in wanted.items()]
        return any(change > 0 or change <= -self.least_drop for change in changes)

    def _combined(self, name: str) -> int:
        widths = [asked[name] for asked in self._asked]
        return max(widths) if self.combine == "max" else math.ceil(statistics.median(widths))
