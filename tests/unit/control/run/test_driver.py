"""The driver by itself: what processes say is said by the test."""

from __future__ import annotations

from collections import deque

import pytest
from counting_plan import plan_of_words

from esault import UsageError
from esault.control.placement.placement import Cluster
from esault.control.run.driver import STOP_AT_ONCE_PATIENCE, STOP_PATIENCE, Driver
from esault.messages.change import HoldRanges, RangesHandedOver, RangesHeld, StateInstalled
from esault.messages.checkpoint import Checkpoint, Snapped
from esault.messages.control import (
    AckRouting,
    Add,
    Added,
    Build,
    Built,
    Connect,
    Ended,
    Exited,
    Failed,
    Finish,
    Finished,
    Fork,
    Grace,
    Kill,
    NotForked,
    Stop,
    Stopped,
    Switched,
    Table,
)
from esault.messages.settings import Settings
from esault.messages.status import Status, SubUnitCounts


class Run:
    """A driver whose processes answer at once what all processes answer."""

    def __init__(self, settings=None, **options):
        self.now = 10.0
        self.driver = Driver(plan=plan_of_words(), run="run", host="here", settings=settings or Settings(), **options)
        self.said = deque()
        self.silent = set()
        #: kinds of messages that nobody answers
        self.deaf = set()

    def answer(self):
        """Until nothing is asked any more."""
        while self.driver.outbox:
            to, message = self.driver.outbox.popleft()
            self.said.append((to, message))
            if to in self.silent or isinstance(message, Build) or type(message) in self.deaf:
                continue
            for answer in self.answers(to, message):
                assert self.driver.handle(answer, self.now)

    def answers(self, to, message):
        if isinstance(message, Fork):
            i = message.build.incarnation
            return [] if i in self.silent else [Built(i, 1000 + i, f"data {i}", f"express {i}")]
        if isinstance(message, Add):
            return [Added(to, tuple(sender for sender, _ in message.senders))]
        if isinstance(message, Connect):
            return [Switched(to, table.target, table.version) for table in message.tables]
        if isinstance(message, Table):
            return [Switched(to, message.target, message.version)]
        if isinstance(message, Finish):
            return [Finished(to)]
        if isinstance(message, HoldRanges):
            return [RangesHeld(to, message.version)]
        if isinstance(message, Stop):
            return [Stopped(to, Status(to, self.now, SubUnitCounts()))]
        return []

    def running(self):
        self.driver.start(self.now)
        self.answer()
        assert self.driver.phase == "beginning"
        self.driver.begun(self.now)
        self.answer()
        assert self.driver.phase == "running"
        self.said.clear()
        return self

    def subs(self, unit):
        return list(self.driver.units[unit].subs)

    def heard(self, kind):
        return [to for to, m in self.said if isinstance(m, kind)]


def test_it_goes_from_building_to_running_when_all_are_wired_and_the_sinks_are_ready():
    run = Run()
    run.driver.start(run.now)
    assert run.driver.phase == "building"
    run.answer()
    assert run.driver.phase == "beginning"
    run.driver.begun(run.now)
    assert run.driver.phase == "running"
    assert run.driver.running_since == run.now


def test_it_ends_in_order_when_every_unit_has_finished():
    run = Run().running()
    for unit in run.driver.units:
        for incarnation in run.subs(unit):
            run.driver.handle(Ended(incarnation), run.now)
        run.answer()
    assert run.driver.phase == "ended"
    assert run.driver.finished_in_order
    assert run.driver.failure is None


def test_one_process_that_never_stands_keeps_the_run_from_beginning():
    run = Run()
    run.silent = {1}
    run.driver.start(run.now)
    run.answer()
    assert run.driver.phase == "building"


def test_one_that_does_not_answer_while_all_are_told_of_each_other_is_replaced():
    run = Run()
    run.deaf = {Add}
    run.driver.start(run.now)
    run.answer()
    assert run.driver.phase == "wiring"
    run.driver.tick(run.now + 1)
    run.driver.tick(run.now + 60)
    assert not run.driver.notices
    run.driver.tick(run.now + 61)
    (said,) = run.driver.notices
    assert said.startswith("no answer for 60 s from ")
    killed = {message.incarnation for to, message in run.driver.outbox if to == "keeper" and isinstance(message, Kill)}
    assert killed == {i for name, unit in run.driver.units.items() for i in unit.unwired()}
    assert killed
    run.driver.outbox.clear()
    run.deaf = set()
    for incarnation in sorted(killed):
        run.driver.handle(Exited(incarnation, "the run ended it"), run.now)
    run.answer()
    assert run.driver.phase == "beginning"


def test_a_death_is_told_of_and_made_up_for_and_then_there_is_a_grace():
    run = Run().running()
    victim = run.subs("count")[0]
    run.driver.handle(Exited(victim, "signal 9"), run.now)
    assert list(run.driver.notices) == [f"count/{victim} died (signal 9)"]
    run.answer()
    assert victim not in run.subs("count")
    assert set(run.driver.units["count"].table.owners()) == set(run.subs("count"))
    assert run.driver.deaths == 1
    above = run.driver.plan.above("count")
    assert above == {"lines", "split"}
    assert set(run.heard(Grace)) == {i for unit in above for i in run.subs(unit)}, "no other owner's roots went there"
    assert run.heard(AckRouting)


def moving(run, unit="count"):
    """All of a change that is on have given and taken."""
    change = run.driver.units[unit].change
    for old in sorted(change.old_owners):
        run.driver.handle(RangesHandedOver(old, change.version, tuple(change.new_owners)), run.now)
    for new in sorted(change.new_owners):
        run.driver.handle(StateInstalled(new, change.version), run.now)
    run.answer()


def test_all_are_told_once_of_all_that_a_change_starts_and_once_of_all_that_it_stops():
    run = Run().running()
    before = {i for unit in run.driver.units for i in run.subs(unit)}
    run.driver.commands.scale("count", 6, run.now)
    run.answer()
    after = {i for unit in run.driver.units for i in run.subs(unit)}
    assert len(after - before) == 4
    assert sorted(run.heard(AckRouting)) == sorted(after), "once each"
    moving(run)
    assert run.driver.units["count"].width == 6
    run.said.clear()
    run.driver.commands.scale("count", 2, run.now)
    run.answer()
    moving(run)
    leaving = sorted(i for i in run.subs("count") if run.driver.units["count"].subs[i].leaving)
    assert len(leaving) == 4 and not run.heard(AckRouting)
    for i, incarnation in enumerate(leaving):
        assert not run.heard(AckRouting), f"{i} of them have left"
        run.driver.handle(Ended(incarnation), run.now)
        run.answer()
    assert not set(leaving) & set(run.subs("count"))
    assert sorted(run.heard(AckRouting)) == sorted(before), "once each"


def test_all_are_told_of_those_that_left_also_where_the_last_of_them_dies():
    run = Run().running()
    before = {i for unit in run.driver.units for i in run.subs(unit)}
    run.driver.commands.scale("count", 4, run.now)
    run.answer()
    moving(run)
    run.driver.commands.scale("count", 2, run.now)
    run.answer()
    moving(run)
    left, dies = sorted(i for i in run.subs("count") if run.driver.units["count"].subs[i].leaving)
    run.said.clear()
    run.driver.handle(Ended(left), run.now)
    run.answer()
    assert not run.heard(AckRouting)
    run.driver.handle(Exited(dies, "signal 9"), run.now)
    run.answer()
    assert set(run.heard(AckRouting)) >= before


def test_the_death_of_somebody_who_is_not_known_is_nothing():
    run = Run().running()
    run.driver.handle(Exited(999, ""), run.now)
    assert (run.driver.deaths, list(run.driver.outbox)) == (0, [])


def test_a_failure_ends_the_run_and_the_first_one_counts():
    run = Run().running()
    run.driver.handle(Failed(run.subs("count")[0], "count", "one"), run.now)
    run.driver.fail("two", run.now)
    run.answer()
    assert (run.driver.phase, run.driver.failure) == ("ended", "one")


def test_an_ack_server_short_of_descriptors_is_restarted_by_the_strategy_as_a_sub_unit_is():
    settings = Settings(ackers=1, restart_strategy="fixed-delay:attempts=1,delay=2")
    run = Run(settings).running()
    (server,) = (i for i, unit in run.driver.unit_of.items() if not unit)
    run.driver.handle(Failed(server, "", "an ack server: Too many open files", transient=True), run.now)
    run.driver.tick(run.now + 1.9)
    assert ("keeper", Kill(server)) not in run.driver.outbox
    run.driver.tick(run.now + 2.0)
    assert ("keeper", Kill(server)) in run.driver.outbox
    run.answer()
    run.driver.handle(Exited(server, "the run ended it"), run.now)
    run.answer()
    assert run.driver.phase == "running" and run.heard(Fork)
    assert run.driver.acker_assignment.number_of(server) is None and run.driver.acker_assignment.ready


@pytest.mark.parametrize(("at_once", "patience"), [(True, STOP_AT_ONCE_PATIENCE), (False, STOP_PATIENCE)])
def test_who_does_not_stop_in_time_is_killed(at_once, patience):
    run = Run().running()
    (victim, *_) = run.subs("count")
    run.silent = {victim}
    if at_once:
        run.driver.stop_at_once(run.now)
    else:
        for unit in run.driver.units:
            for incarnation in run.subs(unit):
                run.driver.handle(Ended(incarnation), run.now)
            run.answer()
            run.driver.handle(Finished(victim), run.now)
    run.answer()
    assert run.driver.phase == "stopping"
    run.now += patience - 0.1
    run.driver.tick(run.now)
    assert run.driver.phase == "stopping"
    run.now += 0.2
    run.driver.tick(run.now)
    run.answer()
    assert run.driver.phase == "ended"
    assert run.driver.died_late
    assert ("keeper", Kill(victim)) in run.said


def test_draining_before_it_runs_ends_it_at_once():
    run = Run()
    run.driver.start(run.now)
    run.driver.drain(run.now)
    assert (run.driver.phase, run.driver.finished_in_order) == ("ended", False)


def test_no_change_begins_while_a_checkpoint_is_on_and_one_can_in_a_moment():
    run = Run(Settings(delivery="eo")).running()
    assert run.driver.may_checkpoint
    number = run.driver.checkpoint(run.now)
    assert run.driver.busy
    with pytest.raises(UsageError, match="a checkpoint is being taken or gone back to"):
        run.driver.commands.scale("count", 4, run.now)
    with pytest.raises(UsageError, match="no checkpoint can be taken now"):
        run.driver.checkpoint(run.now)
    run.answer()
    for to in [to for to, m in run.said if isinstance(m, Checkpoint)]:
        run.driver.handle(Snapped(to, number), run.now)
    assert not run.driver.busy
    assert run.driver.completed.number == number
    assert run.driver.run_checkpoints.taken == 1


def test_with_checkpoints_a_death_has_all_go_back():
    run = Run(Settings(delivery="eo")).running()
    before = {i for unit in run.driver.units for i in run.subs(unit)}
    spout, (victim, *_) = set(run.subs("lines")), run.subs("count")
    run.driver.handle(Exited(victim, ""), run.now)
    run.driver.deliver(run.now)
    assert run.driver.phase == "building"
    assert run.driver.epoch == 2
    assert f"count/{victim} died: all go back to the beginning" in run.driver.notices
    run.answer()
    killed = {m.incarnation for _, m in run.said if isinstance(m, Kill)}
    assert killed == before - {victim} - spout  # what a source gave that cannot seek is in its process
    run.driver.begun(run.now)
    assert run.driver.phase == "running"
    assert not before & {i for unit in run.driver.units for i in run.subs(unit)}


# commands ----------------------------------------------------------------------------------------


def test_a_command_returns_the_id_that_the_change_has():
    run = Run().running()
    first = run.driver.commands.scale("count", 3, run.now)
    second = run.driver.commands.scale("split", 3, run.now)
    assert [run.driver.units[name].change.id for name in ("count", "split")] == [first, second]
    assert first != second


def test_as_many_as_there_are_is_no_change():
    run = Run().running()
    assert run.driver.commands.scale("count", 2, run.now) is None


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (
            lambda c, now: c.scale("cuont", 3, now),
            "there is no unit 'cuont'; did you mean 'count'. There are: lines, split, count",
        ),
        (lambda c, now: c.scale("count", 99, now), "would need 97 more slots"),
        (lambda c, now: c.change("count", "melt", None, now), "there is no change 'melt'"),
        (lambda c, now: c.move("count", 999, now), "has no sub-unit 999"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_changed(command, why):
    run = Run().running()
    with pytest.raises(UsageError, match=why):
        command(run.driver.commands, run.now)
    assert all(unit.change is None for unit in run.driver.units.values())


def test_a_run_that_ends_takes_no_commands():
    run = Run().running()
    run.driver.drain(run.now)
    with pytest.raises(UsageError, match="is not running"):
        run.driver.commands.scale("count", 3, run.now)
    with pytest.raises(UsageError, match="cannot be throttled"):
        run.driver.commands.throttle("count", 5, 1, run.now)


def refused(run, incarnation, tries, again):
    """The keeper says that it cannot fork this one."""
    run.driver.handle(NotForked(incarnation, "no more processes are allowed", tries, again), run.now)


def newcomer(run):
    """The driver is asked for one more sub-unit of `count`, which is not forked."""
    run.silent.add(run.driver.next_incarnation)
    run.driver.commands.scale("count", run.driver.units["count"].width + 1, run.now)
    return run.driver.next_incarnation - 1


def test_a_change_whose_newcomer_cannot_be_forked_is_given_up_and_the_unit_goes_on():
    run = Run()
    run.running()
    before = run.driver.units["count"].table.snapshot()[1]
    incarnation = newcomer(run)
    run.answer()
    for tries, again in ((1, 0.25), (2, 0.5), (3, 1.0)):
        refused(run, incarnation, tries, again)
        run.now += again
    run.answer()
    unit = run.driver.units["count"]
    assert unit.change is None
    assert incarnation not in unit.subs
    assert unit.table.snapshot()[1] == before
    assert "no more processes are allowed" in unit.changes[-1].dropped
    assert ("keeper", Kill(incarnation)) in run.said
    assert not run.driver.unforked
    assert sum("cannot be started" in line for line in run.driver.notices) == 1


def test_a_run_that_needs_a_process_that_cannot_be_forked_ends_with_the_reason():
    run = Run()
    run.running()
    victim = next(iter(run.driver.units["count"].subs))
    run.silent.add(run.driver.next_incarnation)
    run.driver.handle(Exited(victim, "killed"), run.now)
    run.answer()
    refused(run, run.driver.next_incarnation - 1, 1, 0.25)
    assert run.driver.failure is None
    refused(run, run.driver.next_incarnation - 1, 12, 0.0)
    assert "could not be started in 12 tries: no more processes are allowed" in run.driver.failure


def test_a_process_that_cannot_be_forked_is_not_waited_for_by_an_end_in_order():
    run = Run(Settings(delivery="eo"))
    run.running()
    number = run.driver.checkpoint(run.now)
    for unit in run.driver.units.values():
        for incarnation in unit.subs:
            run.driver.handle(Snapped(incarnation, number), run.now)
    victim = next(iter(run.driver.units["count"].subs))
    run.silent.update(range(run.driver.next_incarnation, run.driver.next_incarnation + 20))
    run.driver.handle(Exited(victim, "killed"), run.now)
    run.answer()
    refused(run, next(iter(run.driver.units["count"].subs)), 1, 0.25)
    run.driver.drain(run.now)
    run.answer()
    assert run.driver.phase == "ended"
    assert run.driver.paused


def test_slots_that_others_can_give_are_asked_for_by_hand_and_refused_until_they_are_there():
    cluster = Cluster()
    cluster.join("here", 8)
    run = Run(resources=cluster).running()
    free = cluster.free
    cluster.hosts["here"].obtainable = 5
    count = run.driver.units["count"]
    with pytest.raises(UsageError, match=rf"would need {free + 2} more slots, and {free} of 8 are free: .* try again"):
        run.driver.commands.scale("count", count.width + free + 2, run.now)
    assert run.driver.places.lacking(run.now) == 2
    assert run.driver.places.lacking(run.now + 60.0) == 0
    assert (run.driver.places.free(), run.driver.places.total) == (free + 5, 13)
    with pytest.raises(UsageError, match=rf"and {free + 5} of 8 are free"):
        run.driver.commands.scale("count", 40, run.now)


def test_nobody_goes_beyond_the_budget():
    run = Run(Settings(budget=6)).running()
    assert run.driver.places.free() < run.driver.resources.free
    with pytest.raises(UsageError, match=r"would need 4 more slots, and \d of 16 are free within the budget of 6"):
        run.driver.commands.scale("count", 6, run.now)


@pytest.mark.parametrize(("continues", "back_to"), [(None, None), (("before", 0), 0)])
def test_what_goes_on_with_a_run_that_had_no_checkpoint_undoes_all_of_that(continues, back_to):
    run = Run(Settings(delivery="eo"), continues=continues)
    run.driver.start(run.now)
    builds = [message.build for to, message in run.driver.outbox if isinstance(message, Fork)]
    assert builds and {(build.continues, build.back_to) for build in builds} == {(continues, back_to)}
