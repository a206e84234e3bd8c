"""The policy `auto`: what the papers and the systems of today do best, together; judges all units of a topology at once.

- **One step, all units** (DS2, Kalavri et al., OSDI 2018): what sources offer is followed through the graph by measured ratios, and each
  unit is sized by the seconds that a tuple takes without waiting. What is not read yet counts, and what waits is to be gone by
  `catch_up` (Flink's autoscaler).
- **Upstream state instead of history** (CRAA's association model, Li et al., 2018): what a unit will receive is what its senders will emit when they have
  grown and work off what waits; the queue is computed some seconds ahead, with the time that new sub-units take to start.
- **No move that would be undone** (CRAA's judgement): growth that would come too late to help is not begun; what is not needed is kept for as
  long as stopping and starting is worth (`change_cost`, plus the state that moves), or as the idle times seen so far teach.
- **The load's own past** (the future work that the eSault paper names): a rhythm that is found in what sources offered foretells what
  comes next; growth begins before it does, and nothing is stopped shortly before.
- **Steady or changed?** Rates are averaged for as long as nothing says they have changed; how large bursts are is learnt from the stream, so that
  neither a climb looks like chance nor a burst like a change.
- **Enough, not plenty**: sub-units may be busy up to `busy`, less where bursts would let tuples wait longer than `latency`, more where the
  worst surprise of the last minute would have fitted as well.
- **An objective in place of `latency`** (`esault run --objective "p99 < 100 ms"`): its time is divided among the units on the way, and what
  each may let tuples wait follows the measured burn rate: less while too many tuples are slow, more while hardly any is.

It is one module of over 300 lines: the parts of one decision share what was measured in one window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from esault.elasticity.action import Action, NoChange, Rescale
from esault.elasticity.estimators.allowance import Allowance
from esault.elasticity.estimators.budget_division import Share
from esault.elasticity.estimators.cores import affordable, waits
from esault.elasticity.estimators.flow_forecast import STEP, outflow, sized
from esault.elasticity.estimators.foretold_idle import ForetoldIdle
from esault.elasticity.estimators.idle_times import IdleTimes
from esault.elasticity.estimators.late_probes import LateProbes
from esault.elasticity.estimators.skew import Skew
from esault.elasticity.estimators.source_forecast import AHEAD, SourceForecast
from esault.elasticity.estimators.staffing import enough
from esault.elasticity.estimators.useful_time import UsefulTime
from esault.elasticity.first_reports import FirstWindow
from esault.elasticity.limits import shares
from esault.elasticity.policies.auto_first import first_growth
from esault.elasticity.policies.auto_flow import FORESEEN, AutoFlow, Upstream, behind, divide, lacking
from esault.elasticity.policies.auto_unit import FULL, AutoUnit
from esault.elasticity.policies.past_run import PastRun
from esault.elasticity.view import RunView, UnitView, UnitWindow

__all__ = ["Auto"]

#: share of late probes from which a busy unit grows whatever the rates say
LATE = 0.2
#: what a second for which moved keys were held is worth, in seconds of a sub-unit
HELD = 10.0
#: share of its time that a unit is busy in a window that has a standard deviation more than the mean, or with the worst surprise of late
ROOM = 0.95
#: growth of a full unit where it is unknown how much more would come
BLIND_GROWTH = 2.0
#: ... and where there is no doubt, and it waits for something else than the processor, which another sub-unit takes little of
WAITING_GROWTH = 4.0
#: seconds for which nothing must have come for a unit that never had anything to do, until it shrinks
UNTRIED = 30.0
#: seconds after a death in which little flows because of it: what is open waits for its replay, or all for going back
RECOVERY = 3.0


@dataclass
class Auto:
    """Parameters in seconds and shares."""

    #: between two looks
    period: float = 0.25
    #: 99 % of tuples should wait no longer than this in a unit, where no objective says more
    latency: float = 0.1
    #: share of its time that a sub-unit may be busy; up to 0.9 where its load is foretold well
    busy: float = 0.8
    #: above this share a unit grows, or above half of what is left to 1
    high: float = 0.92
    #: what waits should be gone after so long
    catch_up: float = 2.0
    #: until a new sub-unit serves
    start: float = 0.4
    #: steady rates are averaged over so long at most
    memory: float = 10.0
    #: seconds of a sub-unit that a stop and a later start are worth
    change_cost: float = 5.0
    #: look for a rhythm in the load, and act before it
    rhythm: bool = True
    #: a unit that is full must be for so long before it grows without knowing how much more would come
    calm: float = 2.0
    #: and for so long where there is no doubt: its processes or its user code were never idle, and it has not shrunk last
    hurry: float = 0.1
    #: after a change nothing is judged for so long
    settle: float = 0.5

    _sources: dict[str, SourceForecast] = field(default_factory=dict, init=False, repr=False)
    _units: dict[str, AutoUnit] = field(default_factory=dict, init=False, repr=False)
    _allowance: Allowance = field(default_factory=lambda: Allowance(0.0), init=False, repr=False, compare=False)
    _past: PastRun = field(default_factory=PastRun, init=False, repr=False, compare=False)
    _useful: UsefulTime = field(default_factory=lambda: UsefulTime(1.0), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shares("auto", busy=self.busy, high=self.high)

    def decide(self, view: RunView) -> Sequence[Action]:
        """One look; mostly nothing."""
        if any(unit.window is None for unit in view.units.values()):
            return ()
        actions: list[Action] = []
        flow = AutoFlow(view.free_slots)
        self._allowance.default = self.latency
        self._allowance.observe(view, {n: s.cost.service for n, s in self._units.items() if s.cost.service is not None})
        flow.recovering = any(u.died_at is not None and view.now < u.died_at + RECOVERY for u in view.units.values())
        flow.reserved = lacking(view, self._sources, self._units)
        flow.behind = behind(view, self._units)
        divide(view, self._units, flow)
        for name, unit in view.units.items():
            window = unit.window
            assert window is not None
            flow.reserved.pop(name, None)
            if unit.plan.kind == "spout":
                window = window.own_pace
                source = self._source(name, window)
                counted, busy = source.rate, self._allowed(source)
                flow.upstream[name] = Upstream(source.blind, *source.newest, 1.0, counted.mean, counted.error, busy)
                flow.bursts[name] = max(1.0, counted.dispersion)
                flow.chance[name] = source.chance
                flow.most[name], flow.steps[name], flow.far[name] = source.most, source.steps, source.far()
                flow.unread[name] = window.lag or 0.0
                continue
            state = self._state(name, unit)
            senders = view.senders.get(name, ())
            sent = sum(w.emitted for w in (view.units[s].window for s in senders) if w is not None)
            overhead = self._useful.overhead(name)
            state.measure(unit, window, sent, self._useful.share(unit), overhead)
            flow.look_at(name, senders, state)
            inflow = [state.share * sum(rates) for rates in zip(*(flow.steps[s] for s in senders))]
            far = flow.far_of(senders, state.share)
            flow.far[name] = None if far is None else [state.emits(each) for each in far]
            rate = state.share * sum(flow.most[s] for s in senders)
            chance = state.share * math.hypot(*(flow.chance[s] for s in senders))
            flow.burst = max(flow.bursts[s] for s in senders)
            flow.passes_on(name, state, rate, chance, self.period)
            n = wanted = unit.width
            done, service = inflow, state.cost.service
            waiting = window.waiting + state.share * sum(flow.unread.get(s, 0.0) for s in senders)
            # What those behind it cannot take is no work for it now.
            waiting = min(waiting, max(0.0, flow.behind.get(name, math.inf) - inflow[0]) * sum(self._ahead(state)))
            if name in view.managed and not unit.changing and self._settled(unit, view.now):
                if service is None:
                    found = self._unmeasured(view, unit, state, flow)
                else:
                    found = self._judge(view, unit, state, inflow, far, rate, chance, waiting, flow)
                actions += found
                wanted = next((a.n for a in found if isinstance(a, Rescale)), n)
                flow.free -= max(0, wanted - n)
            elif unit.changing:
                state.late.forget()
                state.skew.forget()
            if service is not None:
                per = 1.0 / service
                done, _ = outflow(inflow, waiting, n * per, wanted * per, state.ready if wanted > n else 0.0)
            flow.steps[name] = [state.emits(each) for each in done]
        return actions

    def decide_first(self, view: RunView, firsts: Mapping[str, FirstWindow]) -> Sequence[Action]:
        """One look in the first moments, when there is no window yet."""

        def noted(name: str, before: int, after: int, rate: float) -> None:
            self._state(name, view.units[name]).gain.grows(before, after, rate)

        return first_growth(view, firsts, BLIND_GROWTH, WAITING_GROWTH, noted)

    # over runs -------------------------------------------------------------------------------------

    def learnt(self) -> dict[str, Any]:
        """Return what is worth to be known at the start of the next run, as plain values."""
        return PastRun.learnt(self._sources, {name: state.idle for name, state in self._units.items()})

    def recall(self, learnt: Mapping[str, Any]) -> None:
        """Begin with what an earlier run has learnt. Raises KeyError, TypeError, ValueError for another thing."""
        self._past = PastRun(learnt)

    # measuring -------------------------------------------------------------------------------------

    def _source(self, name: str, window: UnitWindow) -> SourceForecast:
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = SourceForecast(self.memory, self.period, self.rhythm)
            self._past.tell(name, source, window.start)
        source.add(window)
        return source

    def _allowed(self, source: SourceForecast) -> float:
        """Share of its time that a sub-unit may be busy: with room for what was not foretold, as far as `busy` leaves any."""
        busy = self.busy + max(0.0, FORESEEN - self.busy) * self._allowance.looseness
        worst = source.surprises.worst
        if worst is None:
            return busy
        return max(busy, min(FORESEEN, ROOM / max(1.0, worst)))

    def _state(self, name: str, unit: UnitView) -> AutoUnit:
        state = self._units.get(name)
        if state is None:
            late, skew = LateProbes(self.latency, self.calm), Skew(self.high, self.calm)
            state = self._units[name] = AutoUnit(IdleTimes(self.change_cost), late, skew, self.start, self.latency)
            state.idle.recall(self._past.idle(name))
        state.quick = self._allowance.wait(name)
        last = unit.last
        if last is not None and last.at > state.learnt_at and not last.dropped:
            state.learnt_at = last.at
            if last.after > last.before:
                state.ready += 0.5 * (last.prepared + last.held - state.ready)
            state.hold = HELD * last.held
            state.idle.change = self.change_cost + state.hold
        return state

    def _most(self, unit: UnitView, flow: AutoFlow) -> int:
        """Sub-units that the unit may have by its own limit and by the slots that are free."""
        most = unit.width + max(0, flow.free - sum(flow.reserved.values()))
        if unit.name in flow.division:
            # Who is to have a slot is decided: those that stand behind in the graph are not kept from it.
            most = max(unit.width, min(unit.width + max(0, flow.free), flow.division[unit.name]))
        return most if unit.plan.max_parallelism is None else min(most, unit.plan.max_parallelism)

    def _ahead(self, state: AutoUnit) -> tuple[float, float]:
        """Return the seconds until new sub-units serve, and then until what waits is to be gone; together no more than is foretold."""
        return min(state.ready, AHEAD - self.catch_up), self.catch_up

    def _settled(self, unit: UnitView, now: float) -> bool:
        return unit.changed_at is None or now >= unit.changed_at + self.settle

    # judging ---------------------------------------------------------------------------------------

    def _unmeasured(self, view: RunView, unit: UnitView, state: AutoUnit, flow: AutoFlow) -> list[Action]:
        """Judge a unit of which it is unknown what a tuple takes: one that is full and late grows all the same."""
        if gone := self._untried(unit, state, view.now, flow.recovering):
            return [gone]
        n, stuck = unit.width, state.stuck(unit, view.now)
        unknown = f"it is unknown what a tuple takes: {state.cost.missing}"
        if unit.plan.keyed:
            # Keys move when the tuple in hand is over: then it is known as well, and one change is enough.
            return [
                NoChange(f"{unknown}; its keys can move when its first tuple is over", "unmeasured", unit=unit.name)
            ]
        if stuck < self.calm:
            return [NoChange(f"{unknown}; it grows if it is full for {self.calm:g} s", "unmeasured", unit=unit.name)]
        wanted = affordable(view, unit, min(self._most(unit, flow), math.ceil(n * BLIND_GROWTH)))
        if wanted <= n:
            return [self._bounded(unit, flow, f"{unknown}, and it has been full for {stuck:.1f} s")]
        reason = f"{unknown}; it has been at its first tuples for {stuck:.1f} s, and {state.open:,.0f} are open"
        return [Rescale(reason, wanted, unit=unit.name)]

    def _untried(self, unit: UnitView, state: AutoUnit, now: float, recovering: bool) -> Action | None:
        """Return the change of a unit for which nothing has come for long, or why there is none yet; None: something comes."""
        n, least = unit.width, unit.plan.min_parallelism
        if not state.untried(unit, now) or recovering:
            state.idle.unknown(n, now)
            return None
        state.idle.needed(least, n, now)
        if n <= least:
            return NoChange(f"nothing has come for it; {n} {_are(n)} enough", "enough", unit=unit.name)
        idle = state.idle.idle(n, now)
        text = f"nothing has come for it for {idle:.0f} s"
        if idle < max(UNTRIED, state.idle.change):
            return NoChange(f"{text}; {least} {_are(least)} enough after {UNTRIED:g} s", "untried", unit=unit.name)
        return Rescale(text, least, unit=unit.name)

    def _bounded(self, unit: UnitView, flow: AutoFlow, text: str) -> NoChange:
        """Name the bound that keeps the unit from growing."""
        if unit.plan.max_parallelism is not None and unit.width >= unit.plan.max_parallelism:
            bound, cause = f"its max_parallelism is {unit.plan.max_parallelism}", "max_parallelism"
        elif unit.name in flow.division:
            bound, cause = f"the budget of {flow.budget} is spent, and {flow.wanted} would do for all units", "budget"
        elif flow.free <= 0 and flow.spent:
            bound, cause = f"the budget of {flow.budget} is spent", "budget"
        elif flow.free <= 0:
            bound, cause = "no slot is free: --slots says how many there are", "slots"
        else:
            bound, cause = "no core is free, and its work takes cores", "cores"
        return NoChange(f"{text}; {bound}", cause, unit=unit.name)

    def _judge(
        self,
        view: RunView,
        unit: UnitView,
        state: AutoUnit,
        inflow: Sequence[float],
        far: Sequence[float] | None,
        rate: float,
        chance: float,
        waiting: float,
        flow: AutoFlow,
    ) -> list[Action]:
        n, service, plan = unit.width, state.cost.service, unit.plan
        assert service is not None
        state.late.observe(unit.samples, view.now)
        state.keys = state.few_keys.count(unit)
        most = max(n, min(self._most(unit, flow), state.most_useful))
        # So far ahead new sub-units must be asked for now, to have worked off by then what waits.
        ready, rest = self._ahead(state)
        by = ready + rest
        lead = by + 2 * self.period
        soon = inflow[: int(lead / STEP) + 1]
        work = max(*soon, rate)
        # What will be needed in a moment is not idle.
        later = max(*inflow, rate)
        needed = max(plan.min_parallelism, self._fit(later, chance, state, flow))
        if flow.recovering:
            state.idle.unknown(n, view.now)
        else:
            state.idle.needed(needed, n, view.now)
        wanted, reason, slow, over = n, "", False, False
        sure = [flow.sure * r for r in soon]
        # Those that work off what waits go when it is gone.
        useful = sized(sure, waiting, min(n, needed), FULL / service, 0.0, by, state.latency, n) if waiting else 0
        state.works_off = waiting if useful > needed else 0.0
        late = self._late(unit, state, view.now)
        # One that has more than its part to do needs other ranges, not more sub-units.
        done = state.done if state.works_off else 0.0
        anew = state.skew.share_anew(unit, view.now, max(rate, done), service, flow.busy if late else self.high)
        if not flow.rising:
            slow = (
                late
                and not (anew or state.skew.waits)
                and self._busy(state, view.now, max(soon) * service * unit.heaviest_share)
            )
            short = sized(sure, waiting, n, FULL / service, ready, by, state.latency, n + 1) > n
            high = max(self.high, (1.0 + flow.busy) / 2)
            over = max(max(sure) * service / high, (max(sure) + chance) * service) > n or short or slow
            if over and n < most:
                fit = self._fit(work, chance, state, flow)
                catching = sized(soon, waiting, n, FULL / service, ready, by, state.latency, most)
                wanted = min(most, max(fit, catching, n + 1 if slow else n))
                probes = f", {state.late.share:.0%} of the probes were late" if slow else ""
                reason = (
                    f"{_load(work, service)}, "
                    f"{waiting:,.0f} wait{probes}; with {wanted} waits stay below {1000 * state.latency:.0f} ms"
                )
        useful = max(needed, self._fit(work, chance, state, flow)) if over else min(n, max(needed, useful))
        state.enough = max(useful, needed)
        if plan.max_parallelism is not None:
            useful, state.enough = min(useful, plan.max_parallelism), min(state.enough, plan.max_parallelism)
        state.desire = Share(
            n, useful, plan.min_parallelism, rate, service, flow.burst, state.latency, copies=plan.replicas
        )
        given_up = flow.division.get(unit.name, n)
        if given_up < n:
            others = "the budget is spent, and tuples of other units would wait longer"
            return [Rescale(f"{_load(work, service)}; {others}", given_up, unit=unit.name)]
        if flow.blind and (wanted <= n or state.hungry):
            # What gets through says little of what would come.
            more, why = self._blind(unit, state, view.now, most)
            wanted, reason = (more, why) if more > wanted else (wanted, reason)
            over = over or bool(why)
        # Where a source cannot tell what more it has, throughput is all that growth can promise.
        state.gains_nothing = state.gain.why_not(n, view.now, flow.blind) if wanted > n else ""
        if state.gains_nothing:
            wanted = n
        if wanted > n:
            wanted = affordable(view, unit, wanted, service)
        actions: list[Action] = []
        if wanted > n:
            actions.append(Rescale(reason, wanted, unit=unit.name))
            state.gain.grows(n, wanted)
            if slow and wanted == n + 1:
                # Nothing but late probes speaks for it: it is needed from now on, and not idle since long ago.
                state.idle.needed(wanted, n, view.now)
        elif anew:
            actions.append(anew)
        elif needed < n and n > plan.min_parallelism and state.late.share < LATE:
            # With the rate known better there may be still less to do, and half way to where it would grow again nothing is undone.
            closer = replace(flow, busy=max(flow.busy, (self.busy + self.high) / 2))
            least = max(plan.min_parallelism, self._fit(flow.sure * max(inflow), chance, state, closer))
            # Where a rhythm says when each is needed next, no past idle time has to.
            again = None if far is None else [self._fit(each, chance, state, flow) for each in far]
            wanted, reason = self._shrunk(unit, state, view.now, needed, least, later, again, lead)
            if wanted < n:
                wanted = sized(sure, waiting, wanted, FULL / service, 0.0, by, state.latency, n)
            if wanted < n:
                actions.append(Rescale(reason, wanted, unit=unit.name))
        if actions:
            state.late.forget()
            state.skew.forget()
        elif not flow.rising:
            actions.append(self._why_not(unit, state, flow, _load(later, service), over, needed))
        if advice := state.skew.heavy_key(unit, service, view.now):
            actions.append(advice)
        return actions

    def _why_not(self, unit: UnitView, state: AutoUnit, flow: AutoFlow, load: str, over: bool, needed: int) -> NoChange:
        n = unit.width
        if state.gains_nothing:
            return NoChange(f"{load}; {state.gains_nothing}", "no gain", unit=unit.name)
        if over and state.keys is not None and n >= state.keys:
            keys = "one key" if state.keys == 1 else f"{state.keys} keys"
            text = f"{load}; all of its tuples have {keys}, and a key is in one sub-unit: more would have nothing to do"
            return NoChange(text, "keys", unit=unit.name)
        if over:
            return self._bounded(unit, flow, f"{load}, and {n} are there")
        if state.skew.waits:
            share = f"one has {unit.heaviest_share:.0%} of it"
            return NoChange(f"{load}; {share}: ranges are shared anew if that lasts and helps", "skew", unit=unit.name)
        if needed < n and state.works_off:
            text = (
                f"{load}; {needed} {_are(needed)} enough, and the others work off the {state.works_off:,.0f} that wait"
            )
            return NoChange(text, "waiting", unit=unit.name)
        if max(needed, unit.plan.min_parallelism) < n:
            kept = f"{n - needed} more {_are(n - needed)} kept: to stop and start them costs more than to wait"
            return NoChange(f"{load}; {needed} {_are(needed)} enough, {kept}", "kept", unit=unit.name)
        if state.late.share > LATE:
            text = f"{load}; {n} {_are(n)} enough, and yet {state.late.share:.0%} of the probes were late"
            return NoChange(text, "late", unit=unit.name)
        return NoChange(f"{load}; {n} {_are(n)} enough", "enough", unit=unit.name)

    def _fit(self, rate: float, chance: float, state: AutoUnit, flow: AutoFlow) -> int:
        """Enough for that rate, and for a window that has a standard deviation more."""
        service = state.cost.service
        assert service is not None
        fit = enough(rate, service, flow.busy, state.quick, flow.burst)
        return min(max(fit, math.ceil((rate + chance) * service / ROOM)), state.most_useful)

    def _late(self, unit: UnitView, state: AutoUnit, now: float) -> bool:
        """Return whether tuples wait for long although the last change has had its time: then the figures are too good."""
        had_time = unit.changed_at is None or now >= unit.changed_at + self.catch_up + self.calm
        return had_time and state.late.share > LATE

    def _busy(self, state: AutoUnit, now: float, heaviest: float) -> bool:
        """Return whether that may be for want of sub-units; `heaviest`: share of its time that the one with most to do works."""
        return heaviest > self.busy or (state.full_since is not None and now - state.full_since >= self.calm)

    def _shrunk(
        self,
        unit: UnitView,
        state: AutoUnit,
        now: float,
        needed: int,
        least: int,
        work: float,
        again: Sequence[int] | None,
        lead: float,
    ) -> tuple[int, str]:
        """Return how many are left. `again`: what a rhythm needs in each second from now, for which growth begins `lead` seconds before."""
        n, idle = unit.width, state.idle

        coming = None if again is None else ForetoldIdle(again, self.change_cost, state.hold)

        def patience(rank: int) -> float:
            if coming is None:
                return idle.patience(rank)
            return 2 * self.period if coming.pays(rank, range(needed + 1, n + 1), lead) else math.inf

        # As long as another change may follow this one since more is known, it can wait for as long as a change is worth.
        kept = sum(idle.idle(rank, now) for rank in range(needed + 1, n + 1))
        if least < needed and kept < idle.change:
            return n, ""
        left = n
        while left > needed and idle.idle(left, now) >= patience(left):
            left -= 1
        if left == n:
            return n, ""
        # One change later is better than two, where the next will soon have waited long enough.
        next_wait = patience(left)
        soon = left > needed and next_wait - idle.idle(left, now) < next_wait / 2
        if soon and idle.idle(n, now) < 2 * next_wait:
            return n, ""
        unneeded = idle.idle(left + 1, now)
        # What only uncertainty keeps goes with the others, or would soon be a change of its own.
        left = min(left, least) if left == needed else left
        service = state.cost.service or 0.0
        return left, (
            f"{_load(work, service)}; {n - left} {'was' if n - left == 1 else 'were'} not needed for {unneeded:.1f} s"
        )

    def _blind(self, unit: UnitView, state: AutoUnit, now: float, most: int) -> tuple[int, str]:
        """A full unit behind a source that cannot tell how much more it has."""
        shrunk = unit.last is not None and unit.last.after < unit.last.before
        sure = state.hungry and not shrunk
        calm = self.hurry if sure else self.calm
        if state.full_since is None or now - state.full_since < calm:
            return unit.width, ""
        full = now - state.full_since
        growth = WAITING_GROWTH if sure and waits(unit) else BLIND_GROWTH
        wanted = min(most, math.ceil(unit.width * growth))
        return wanted, f"it has been full for {full:.1f} s, and its source cannot tell how much more there is"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _load(rate: float, service: float) -> str:
    each = f"{service:.3g} s" if service >= 0.9995 else f"{1000 * service:.3g} ms"
    many = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
    return f"{many} tuples/s of {each} each are work for {rate * service:.1f} sub-units"
