"""The flow that `auto` foretells while it walks the graph from its sources, and what each unit lacks for its bare work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from esault.elasticity.estimators.budget_division import Share, divided, wanted_in_all
from esault.elasticity.estimators.source_forecast import DOUBT, SourceForecast
from esault.elasticity.policies.auto_unit import FULL, AutoUnit
from esault.elasticity.view import RunView
from esault.value_class import value_class

__all__ = ["FORESEEN", "AutoFlow", "Upstream", "behind", "divide", "lacking"]

#: share of its time that a unit may be busy where its load is foretold well
FORESEEN = 0.9
#: a rate above so many times the last one may still be on its way up
RISING = 1.3


@value_class(frozen=True)
class Upstream:
    """Knowledge of the sources that a unit descends from, in tuples a second of its own."""

    #: one of them cannot tell how much more there is
    blind: bool = False
    #: offered in the newest window and in the one before, and from where on a rise is one
    newest: float = 0.0
    before: float = 0.0
    least: float = 0.0
    #: the rate, and its standard error
    mean: float = 0.0
    error: float = 0.0
    #: share of its time that a sub-unit may be busy
    busy: float = 1.0

    @property
    def doubt(self) -> float:
        """By so much, as a share of it, the rate is less than is estimated at worst."""
        return DOUBT * self.error / max(self.mean, 1e-9)

    def times(self, share: float) -> Upstream:
        """Return the same where so many tuples come of one."""
        return Upstream(
            self.blind,
            share * self.newest,
            share * self.before,
            share * self.least,
            share * self.mean,
            share * self.error,
            self.busy,
        )

    @classmethod
    def together(cls, all_of_them: Iterable[Upstream]) -> Upstream:
        """Return what is known of the sources of all of them."""
        each = list(all_of_them)
        return cls(
            any(one.blind for one in each),
            sum(one.newest for one in each),
            sum(one.before for one in each),
            sum(one.least for one in each),
            sum(one.mean for one in each),
            math.hypot(*(one.error for one in each)),
            min((one.busy for one in each), default=1.0),
        )


@dataclass
class AutoFlow:
    """The flow that is foretold, while the graph is walked from its sources."""

    #: slots that are left
    free: int
    #: of these, what each unit that is still to be judged lacks for its bare work
    reserved: dict[str, int] = field(default_factory=dict)
    #: tuples a second that each unit emits in the steps to come, and that receivers must be there for
    steps: dict[str, list[float]] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    #: and in each of the seconds after them, where each of their sources has a rhythm
    far: dict[str, list[float] | None] = field(default_factory=dict)
    #: standard deviation of what a window has by chance, tuples a second
    chance: dict[str, float] = field(default_factory=dict)
    #: tuples due at each source that it has not read
    unread: dict[str, float] = field(default_factory=dict)
    #: by unit: what is known of its sources
    upstream: dict[str, Upstream] = field(default_factory=dict)
    #: of the unit that is looked at: a source of it cannot tell how much more there is; what they offer is still on its way up
    blind: bool = False
    rising: bool = False
    #: variance over mean of what each unit emits in a moment; and of what comes to the unit that is looked at
    bursts: dict[str, float] = field(default_factory=dict)
    burst: float = 1.0
    #: of the unit that is looked at: by so much, as a share of it, its rate may be less than is estimated
    doubt: float = 0.0
    #: of it: share of its time that a sub-unit may be busy
    busy: float = 1.0
    #: tuples a second of each unit that those behind it can take at most
    behind: dict[str, float] = field(default_factory=dict)
    #: sub-units that each unit is to have, where there are fewer than all want, and slots that all want
    division: dict[str, int] = field(default_factory=dict)
    wanted: int = 0
    budget: int | None = None
    #: it is what keeps slots from being taken, not their number
    spent: bool = False
    #: a sub-unit died a moment ago
    recovering: bool = False

    def far_of(self, senders: Iterable[str], share: float) -> list[float] | None:
        """Return this share of what the senders will emit, second by second; None where a source has no rhythm."""
        rates = [self.far.get(sender) for sender in senders]
        known = [each for each in rates if each is not None]
        return [share * sum(at) for at in zip(*known)] if known and len(known) == len(rates) else None

    def look_at(self, name: str, senders: Iterable[str], state: AutoUnit) -> None:
        """Go on to the next unit, whose senders have been looked at."""
        known = Upstream.together(self.upstream[sender] for sender in senders).times(state.share)
        state.rising = known.newest > RISING * max(known.before, known.least) and not state.rising
        self.blind, self.rising, self.doubt, self.busy = known.blind, state.rising, known.doubt, known.busy
        mean, error = state.own.mean, state.own.error
        own = Upstream(newest=mean, before=mean, mean=mean, error=error)
        self.upstream[name] = Upstream.together([known.times(state.cost.selectivity), own])

    def passes_on(self, name: str, state: AutoUnit, rate: float, chance: float, period: float) -> None:
        """Note what a unit emits besides what is expected step by step, in windows of `period` seconds, where so much comes."""
        selectivity, own = state.cost.selectivity, state.own
        self.most[name] = state.emits(rate) + own.error
        self.chance[name] = math.hypot(chance * selectivity, math.sqrt(max(own.dispersion, 0.0) * own.mean / period))
        # A line comes at a moment, and so do all of its words; a filter thins what comes out.
        through = 1.0 + max(1.0, self.burst) * selectivity - min(1.0, selectivity)
        share = own.mean / state.emits(rate) if own.mean > 0 else 0.0
        self.bursts[name] = through + share * (max(1.0, own.dispersion) - through)

    @property
    def sure(self) -> float:
        """Share of what is expected that comes very likely."""
        return max(0.0, 1.0 - self.doubt)


def lacking(view: RunView, sources: Mapping[str, SourceForecast], units: Mapping[str, AutoUnit]) -> dict[str, int]:
    """Return the sub-units that each unit lacks for its work alone, as of the last look: room for short waits in one is not to take them."""
    rates: dict[str, float] = {}
    found: dict[str, int] = {}
    for name, unit in view.units.items():
        source, state = sources.get(name), units.get(name)
        if state is None:
            rates[name] = 0.0 if source is None else source.most
            continue
        rate = state.share * sum(rates[s] for s in view.senders.get(name, ()))
        rates[name] = state.emits(rate)
        n = math.ceil(rate * (state.cost.service or 0.0) / FORESEEN)
        if state.cost.service is None and name in view.managed:
            # What it lacks is unknown: it is not left with less than an equal part.
            n = unit.width + view.free_slots // len(view.managed)
        n = n if unit.plan.max_parallelism is None else min(n, unit.plan.max_parallelism)
        if name in view.managed and n > unit.width:
            found[name] = n - unit.width
    return found


def behind(view: RunView, units: Mapping[str, AutoUnit]) -> dict[str, float]:
    """Return how many tuples of each unit those behind it can take in a second, with all the sub-units that they may have.

    What waits before it need not be worked off faster: it would wait behind it.
    """
    takes: dict[str, float] = {}
    found: dict[str, float] = {}
    for name, unit in reversed(list(view.units.items())):
        state = units.get(name)
        if state is None:
            continue
        receivers = [r for r, senders in view.senders.items() if name in senders and r in takes]
        emitted = min((takes[r] / units[r].share for r in receivers if units[r].share > 0), default=math.inf)
        found[name] = emitted / state.cost.selectivity if state.cost.selectivity > 0 else math.inf
        most = unit.width + view.free_slots if name in view.managed else unit.width
        if unit.plan.max_parallelism is not None:
            most = min(most, max(unit.width, unit.plan.max_parallelism))
        own = max(1, min(most, state.most_useful)) * FULL / state.cost.service if state.cost.service else math.inf
        takes[name] = min(own, found[name])
    return found


def divide(view: RunView, units: Mapping[str, AutoUnit], flow: AutoFlow) -> None:
    """Divide the budget among the units, as of the last look, where they want more slots than are left of it."""
    if view.budget is None:
        return
    flow.budget, flow.spent = view.budget, view.held + view.free_slots >= view.budget
    shares: dict[str, Share] = {}
    for name in view.managed:
        unit, state = view.units[name], units.get(name)
        desire = None if state is None else state.desire
        if desire is None and state is not None and state.untried(unit, view.now):
            # For whom nothing comes the others do not wait.
            desire = Share(unit.width, unit.width, unit.plan.min_parallelism, 0.0, 0.0, copies=unit.plan.replicas)
        if desire is None or unit.changing:
            return  # who changes gives or gets a slot in a moment
        shares[name] = replace(desire, width=unit.width)
    more = sum(max(0, share.most - share.width) * share.copies for share in shares.values())
    if more <= view.free_slots:
        return
    others = view.held - sum(share.width * share.copies for share in shares.values())
    flow.division = divided(min(view.budget, view.held + view.free_slots) - others, shares)
    all_of_it = {name: replace(share, wanted=units[name].enough) for name, share in shares.items()}
    flow.wanted = others + wanted_in_all(all_of_it)
