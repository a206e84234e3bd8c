"""Nothing is dropped silently; an exception is told once; no send waits for a frozen process."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from thespian.actors import ActorExitRequest, ChildActorExited, WakeupMessage

from esault.runtime.actors import system
from esault.runtime.actors.actor import HandlerFailed, ReportingActor, UnknownMessage


@dataclass(frozen=True)
class Order:
    what: str
    number: int = 0


@dataclass(frozen=True)
class NobodyKnows:
    number: int


@dataclass(frozen=True)
class Reporter:
    address: Any


class Child(ReportingActor):
    def receiveMsg_Order(self, order: Order, sender: Any) -> None:
        if order.what == "pid":
            self.send(sender, ("pid", order.number, os.getpid()))
        elif order.what == "count":
            self.send(sender, ("counted", order.number))


class Worker(ReportingActor):
    """Does what an `Order` says."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.told: list[int] = []
        self.lost = 0

    def receiveMsg_Reporter(self, message: Reporter, sender: Any) -> None:
        self.reporter = message.address

    def receiveMsg_Order(self, order: Order, sender: Any) -> None:
        self.client = sender
        getattr(self, f"do_{order.what}")(order.number)

    def do_answer(self, number: int) -> None:
        self.send(self.client, number)

    def do_report_to_me(self, number: int) -> None:
        self.reporter = self.client

    def do_fail(self, number: int) -> None:
        self.calls += 1
        raise ValueError(f"failed at call {self.calls}")

    def do_calls(self, number: int) -> None:
        self.send(self.client, self.calls)

    def do_send_a_lock(self, number: int) -> None:
        self.send(self.client, threading.Lock())

    def do_send_and_change(self, number: int) -> None:
        values = [1]
        for _ in range(3):
            self.send(self.client, values)
            values.append(values[-1] + 1)

    def do_children(self, number: int) -> None:
        self.children = [self.createActor(Child) for _ in range(number)]
        for index, each in enumerate(self.children):
            self.send(each, Order("pid", index))

    def do_flood_first(self, number: int) -> None:
        """That many for the first child, then one for each other."""
        for count in range(number):
            self.send(self.children[0], Order("count", count))
        for each in self.children[1:]:
            self.send(each, Order("count", -1))

    def do_burst(self, number: int) -> None:
        for count in range(number):
            self.send(self.client, count)

    def do_lost(self, number: int) -> None:
        self.send(self.client, self.lost)

    def do_hand_over(self, number: int) -> None:
        """A child's address before it is known."""
        self.send(self.client, Reporter(self.createActor(Child)))

    def do_end_child(self, number: int) -> None:
        self.send(self.children[0], ActorExitRequest())

    def do_stillborn(self, number: int) -> None:
        self.children = [self.createActor(Child)]
        os.kill(self._myRef._child_procs[-1].childProc.pid, signal.SIGKILL)
        self.send(self.children[0], Order("count"))

    def do_thread(self, number: int) -> None:
        """A thread hands over that many numbers."""
        self.reads, self.writes = os.pipe()
        os.set_blocking(self.reads, False)
        self.watch(self.reads, self.wake)
        threading.Thread(target=self.hand_over, args=(number,), daemon=True).start()

    def hand_over(self, number: int) -> None:
        for count in range(number):
            self.told.append(count)
            os.write(self.writes, b"x")

    def wake(self) -> None:
        os.read(self.reads, 65536)
        told, self.told = self.told, []
        for each in told:
            self.send(self.client, each)

    def do_send_from_a_thread(self, number: int) -> None:
        def other() -> None:
            try:
                self.send(self.client, "from a thread")
            except RuntimeError as error:
                self.said = str(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        self.send(self.client, self.said)

    def do_wake_later(self, number: int) -> None:
        self.wakeupAfter(timedelta(seconds=0.01), "payload")

    def receiveMsg_WakeupMessage(self, message: WakeupMessage, sender: Any) -> None:
        self.send(self.client, message.payload)

    def receiveMsg_tuple(self, message: tuple[Any, ...], sender: Any) -> None:
        self.send(self.client, message)

    def receiveMsg_ChildActorExited(self, message: ChildActorExited, sender: Any) -> None:
        self.send(self.client, ("exited", [child == message.childAddress for child in self.children].index(True)))

    def undelivered(self, address: Any, number: int) -> None:
        self.lost += number


@pytest.fixture
def handle() -> Iterator[system.ActorSystemHandle]:
    handle = system.start(secrets.token_bytes(32))
    yield handle
    handle.shutdown(0.5)


@pytest.fixture
def worker(handle: system.ActorSystemHandle) -> Any:
    return handle.create(Worker)


def test_a_message_that_the_actor_does_not_know_is_reported(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("report_to_me"))
    handle.tell(worker, NobodyKnows(5))
    assert handle.listen(60) == UnknownMessage("Worker", "NobodyKnows", "NobodyKnows(number=5)")


def test_without_a_reporter_it_is_logged(tmp_path: Path) -> None:
    file = logging.FileHandler(tmp_path / "log")
    logging.getLogger().addHandler(file)
    try:
        with system.start(secrets.token_bytes(32)) as handle:
            worker = handle.create(Worker)
            handle.tell(worker, NobodyKnows(5))
            handle.tell(worker, Order("fail"))
            handle.tell(worker, Order("answer", 1))
            assert handle.listen(60) == 1
    finally:
        logging.getLogger().removeHandler(file)
        file.close()
    said = (tmp_path / "log").read_text()
    assert "Worker got a message that it does not know, a NobodyKnows: NobodyKnows(number=5)" in said
    assert "Worker failed at a Order:\nTraceback" in said and "ValueError: failed at call 1" in said


def test_a_handler_that_raises_is_reported_and_not_called_again(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("report_to_me"))
    handle.tell(worker, Order("fail"))
    report = handle.listen(60)
    assert isinstance(report, HandlerFailed)
    assert (report.actor, report.type, report.text) == ("Worker", "Order", "ValueError: failed at call 1")
    assert "do_fail" in report.traceback
    handle.tell(worker, Order("calls"))
    assert handle.listen(60) == 1


def test_a_message_that_cannot_travel_fails_where_it_is_sent(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("report_to_me"))
    handle.tell(worker, Order("send_a_lock"))
    report = handle.listen(60)
    assert "cannot pickle '_thread.lock' object" in report.text and "do_send_a_lock" in report.traceback


def test_a_message_is_as_it_was_when_it_was_sent(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("send_and_change"))
    assert [handle.listen(60) for _ in range(3)] == [[1], [1, 2], [1, 2, 3]]


def test_a_burst_arrives_complete_and_in_order(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("burst", 3000))
    assert [handle.listen(60) for _ in range(3000)] == list(range(3000))


def test_a_frozen_child_holds_up_nobody_and_gets_everything_later(
    handle: system.ActorSystemHandle, worker: Any
) -> None:
    handle.tell(worker, Order("children", 3))
    pids = {index: pid for _, index, pid in [handle.listen(60) for _ in range(3)]}
    os.kill(pids[0], signal.SIGSTOP)
    handle.tell(worker, Order("flood_first", 2000))
    started = time.monotonic()
    assert [handle.listen(60) for _ in range(2)] == [("counted", -1)] * 2
    handle.tell(worker, Order("answer", 7))
    assert handle.listen(60) == 7
    assert time.monotonic() - started < 2
    os.kill(pids[0], signal.SIGCONT)
    assert [handle.listen(60) for _ in range(2000)] == [("counted", count) for count in range(2000)]


def test_a_child_that_ends_in_good_order_is_told_of_once(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("children", 1))
    handle.listen(60)
    handle.tell(worker, Order("end_child"))
    assert handle.listen(60) == ("exited", 0)
    assert handle.listen(0.3) is None


def test_a_child_that_dies_before_it_has_an_address_is_told_of(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("stillborn"))
    assert handle.listen(60) == ("exited", 0)
    handle.tell(worker, Order("lost"))
    assert handle.listen(60) == 1
    handle.tell(worker, Order("answer", 7))
    assert handle.listen(60) == 7


def test_the_death_of_a_child_is_told_at_once(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("children", 1))
    _, _, pid = handle.listen(60)
    os.kill(pid, signal.SIGKILL)
    started = time.monotonic()
    assert handle.listen(60) == ("exited", 0)
    assert time.monotonic() - started < 0.5
    handle.tell(worker, Order("flood_first", 10))
    handle.tell(worker, Order("lost"))
    until = time.monotonic() + 5
    while (lost := handle.listen(60)) < 10 and time.monotonic() < until:
        handle.tell(worker, Order("lost"))
    assert lost == 10


def test_the_address_of_a_child_can_be_sent_before_it_is_born(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("hand_over"))
    child = handle.listen(60).address
    handle.tell(child, Order("count", 3))
    assert handle.listen(60) == ("counted", 3)


def test_a_thread_wakes_its_actor_through_a_descriptor(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("thread", 500))
    handle.tell(worker, Order("answer", -1))  # other messages come in between
    got = [handle.listen(60) for _ in range(501)]
    assert sorted(got) == list(range(-1, 500))
    got.remove(-1)
    assert got == list(range(500))
    handle.tell(worker, Order("answer", 7))
    assert handle.listen(60) == 7


def test_sending_from_another_thread_is_an_error_that_says_what_to_do(
    handle: system.ActorSystemHandle, worker: Any
) -> None:
    handle.tell(worker, Order("send_from_a_thread"))
    assert handle.listen(60) == "Worker.send in another thread: put it into a queue, see watch()"


def test_wake_ups_reach_their_handler(handle: system.ActorSystemHandle, worker: Any) -> None:
    handle.tell(worker, Order("wake_later"))
    assert handle.listen(60) == "payload"
