"""What machines have in common that walk through a run: it goes on for some steps, and units are changed where that can be."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from esault import UsageError


class Walk(RuleBasedStateMachine):
    """Of `self.local`, a LocalRuntime."""

    @rule(steps=st.integers(1, 60))
    def go_on(self, steps):
        for _ in range(steps):
            if self.local.driver.phase != "ended" and not self.local.step():
                self.local.wait()

    def wish(self, unit, what):
        if self.local.driver.phase == "running":
            try:
                what(unit)
            except UsageError:
                pass  # not now: it says why

    def owner(self, unit, which):
        owners = self.local.sub_units(unit)
        return owners[which % len(owners)]
