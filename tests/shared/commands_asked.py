"""Asking a run on LocalRuntime for changes: what may be is asked of the engine first, and what is done is counted.

A walk that swallows refusals shows nothing where all is refused: whoever walks asserts what has happened.
"""

from __future__ import annotations

from collections import Counter

from esault import UsageError

CHANGES = ("split", "merge", "move", "scale")


def may_change(local, unit, what, n=0):
    """Whether this unit can be changed so now; `n`: to how many sub-units."""
    asked = local.driver.units[unit]
    together = [asked] if what == "move" else asked.all_replicas
    copies, width = asked.plan.replicas, asked.width
    after, more = {
        "split": (width + 1, copies),
        "merge": (width - 1, 0),
        "move": (width, 1),
        "scale": (n, max(0, n - width) * copies),
    }[what]
    try:
        local.driver.commands.elastic(unit, more)
        for each in together:
            each.check_change(after)
    except UsageError:
        return False
    if what == "scale":
        return n != width  # as many as there are is no change
    divided = {tuple(low for low, _, _ in each.table.intervals()) for each in together}
    return len(divided) == 1  # they may be divided in different ways once a change of one was dropped


def change(local, unit, what, of):
    """Do it if that can be; whether it was begun. `of`: which sub-unit, or for "scale" to how many."""
    if not may_change(local, unit, what, of):
        return False
    getattr(local, what)(unit, of)
    return True


def some_change(local, order, units, what=CHANGES, most=4):
    """One of these, drawn; whether it was begun."""
    unit, wish = order.choice(units), order.choice(what)
    return change(local, unit, wish, order.randint(1, most) if wish == "scale" else order.choice(local.sub_units(unit)))


def checkpoint(local):
    """Begin one if that can be; whether it was."""
    if not local.driver.may_checkpoint:
        return False
    local.checkpoint()
    return True


def may_throttle(local):
    """Whether units can be throttled now."""
    return local.driver.phase == "running" and not local.driver.draining


class Done:
    """What happened in the runs of a test, in all of its examples together."""

    def __init__(self):
        self.counts = Counter()
        self.runs = 0
        self._must = set()

    def of(self, local, *must):
        """Count a run: changes that were carried out, complete checkpoints, deaths. Each of `must` has to come up in some run."""
        driver = local.driver
        self.runs += 1
        for unit in driver.units.values():
            kinds = [each.kind for each in unit.changes if not each.dropped]
            self.counts.update(kinds)
            self.counts["change"] += sum(kind != "copy" for kind in kinds)
        self.counts["checkpoint"] += driver.run_checkpoints.taken
        self.counts["death"] += driver.deaths
        self._must |= set(must)

    def check(self):
        missing = sorted(what for what in self._must if not self.counts[what])
        assert not missing, f"no {' and no '.join(missing)} happened in any run: {dict(self.counts)}"
