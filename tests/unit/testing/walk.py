"""What machines have in common that walk through a run: it goes on for some steps, and units are changed where that can be."""

from __future__ import annotations

from commands_asked import Done, change, checkpoint
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from esault.testing import LocalRuntime


class Walk(RuleBasedStateMachine):
    """Of `self.local`, a LocalRuntime."""

    local: LocalRuntime
    #: what happened in all runs of a test
    done = Done()
    #: what must have happened in one of them at least
    must = ("change",)

    @rule(steps=st.integers(1, 60))
    def go_on(self, steps):
        for _ in range(steps):
            if self.local.driver.phase != "ended" and not self.local.step():
                self.local.wait()

    def certain(self):
        """Walk by hand through all that `must` names."""
        raise NotImplementedError

    def wish(self, unit, what, of):
        change(self.local, unit, what, of)

    def keep(self):
        checkpoint(self.local)

    def owner(self, unit, which):
        owners = self.local.sub_units(unit)
        return owners[which % len(owners)]


def prove(machine, examples, done):
    """Run so many examples of a machine, after one in which all that must happen does: few random ones may miss some of it."""
    machine.done = done
    machine().certain()
    case = machine.TestCase
    case.settings = settings(
        max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )
    case("runTest").runTest()
