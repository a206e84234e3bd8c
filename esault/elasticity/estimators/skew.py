"""Load that lies unevenly: what other ranges can mend, and what no number of sub-units can."""

from __future__ import annotations

from esault.elasticity.action import Advise, Rescale
from esault.elasticity.load_curve import LoadCurve, shared
from esault.elasticity.view import UnitView
from esault.routing.table import OutputTable

__all__ = ["Skew"]

#: the heaviest sub-unit's load over the mean, from which the same number shared anew is a gain: less is left after any change
UNEVEN = 1.15
#: the heaviest sub-unit's load, as a share of what it was, that other ranges must promise: where keys are few no cut divides them better
GAIN = 0.93
#: sampled tuples from which a key's share is believed
SAMPLED = 200
#: seconds for which a key must have too much to do before that is said: what has piled up, such as behind a throttle, comes
#: faster for a while than the key brings
LASTS = 10.0


class Skew:
    """Of one unit; remembers since when, and what was said."""

    def __init__(self, full: float, calm: float) -> None:
        """`full`: share of its time from which a sub-unit has too much to do; `calm`: seconds for which it must have."""
        self._full = full
        self._calm = calm
        self._uneven_since: float | None = None
        self._advised: set[str] = set()
        #: keys that have had too much to do: since when, and when that was seen last
        self._heavy: dict[str, tuple[float, float]] = {}

    @property
    def waits(self) -> bool:
        """Return whether one has too much to do, though not for long enough yet."""
        return self._uneven_since is not None

    def forget(self) -> None:
        """Forget all measurements up to now: they say nothing of what comes."""
        self._uneven_since = None

    def share_anew(
        self, unit: UnitView, now: float, rate: float, service: float, full: float | None = None
    ) -> Rescale | None:
        """The same number with other ranges, where one has far more to do than the others.

        `rate`: tuples/s that come to the unit, `service`: seconds for each; `full`: another share than usual.
        """
        n, share = unit.width, unit.heaviest_share
        uneven = n > 1 and share * n > UNEVEN and share * rate * service > (self._full if full is None else full)
        heaviest = max(unit.samples, key=lambda s: s.load_share or 0.0)
        keys = heaviest.key_load.heaviest
        if uneven and keys and keys[0][2] * share * n > 1.0:
            uneven = False  # one key is all of it: no cut divides a key
        if not uneven:
            self._uneven_since = None
            return None
        if self._uneven_since is None:
            self._uneven_since = now
        if now - self._uneven_since < self._calm:
            return None
        self._uneven_since = None
        if not _gains(unit.first_replica):
            return None
        text = f"sub-unit {heaviest.sub_unit} has {share:.0%} of the load, {1 / n:.0%} would be its part"
        return Rescale(text, n, unit=unit.name)

    def heavy_key(self, unit: UnitView, service: float, now: float) -> Advise | None:
        """A key that keeps a sub-unit busy alone, and has for a while, cannot be helped by more; said once for each."""
        # a change has samples of keys taken anew: for a moment nothing is known of them
        if unit.plan.in_parts:  # more sub-units do help
            return None
        # Calls of `async def process` are many at a time, and one after the other where they have one key.
        each = service * (unit.plan.concurrency or 1)
        self._heavy = {name: (since, last) for name, (since, last) in self._heavy.items() if now - last < LASTS / 2}
        for sample in unit.samples:
            if not sample.key_load.heaviest:
                continue
            name, _, share = sample.key_load.heaviest[0]
            rate = share * sample.arrivals
            if rate * each > self._full and sample.key_load.size >= SAMPLED and name not in self._advised:
                since = self._heavy.get(name, (now, now))[0]
                self._heavy[name] = since, now
                if now - since < LASTS:
                    continue
                self._advised.add(name)
                return Advise(
                    f"unit {unit.name!r}: key {name} alone brings {rate:,.0f} tuples/s, and one sub-unit can process "
                    f"{1 / each:,.0f}/s: more sub-units cannot help. Split it: split_hot_keys=True of a window whose bolt defines "
                    "combine; or group by partial_key() and add the parts up in a next bolt, aggregate before the grouping, or make "
                    "the key finer",
                    unit=unit.name,
                )
        return None


def _gains(unit: UnitView) -> bool:
    """Return whether other ranges would leave the heaviest clearly less, as far as is known where keys lie."""
    table = OutputTable([(low, sample.sub_unit) for sample in unit.samples for low, _ in sample.ranges])
    curve = LoadCurve.of(unit.samples)

    def heaviest(table: OutputTable) -> float:
        return max(sum(curve.load(*piece) for piece in table.ranges(owner)) for owner in table.owners())

    return heaviest(shared(table, curve, table.owners(), ())) < GAIN * heaviest(table)
