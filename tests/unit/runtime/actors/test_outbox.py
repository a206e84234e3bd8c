"""Order per address, nobody waits for anybody else, nothing is lost silently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esault.runtime.actors.outbox import MAX_BUNDLE, Bundle, Outboxes


class Wire:
    """Takes transmissions, and ends them when told."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, tuple[Any, ...]]] = []
        self.open: list[Callable[[bool], None]] = []
        self.lost: list[tuple[Any, int]] = []
        self.at_once = False

    def __call__(self, address: Any, items: tuple[Any, ...], done: Callable[[bool], None]) -> None:
        self.sent.append((address, items))
        if self.at_once:
            done(True)
        else:
            self.open.append(done)

    def end(self, delivered: bool = True) -> None:
        self.open.pop(0)(delivered)


def boxes(wire: Wire, **options: int) -> Outboxes:
    return Outboxes(wire, lambda address, number: wire.lost.append((address, number)), **options)


def test_the_first_message_goes_at_once_and_what_follows_goes_together_when_it_has_been_taken() -> None:
    wire = Wire()
    outboxes = boxes(wire)
    for item in "abc":
        outboxes.post(1, "one", item)
    assert wire.sent == [("one", ("a",))] and outboxes.waiting(1) == 2
    wire.end()
    assert wire.sent[1:] == [("one", ("b", "c"))]
    wire.end()
    assert len(outboxes) == 0


def test_an_address_that_takes_nothing_holds_up_no_other() -> None:
    wire = Wire()
    outboxes = boxes(wire)
    for number in range(1000):
        outboxes.post("frozen", "frozen", number)
    outboxes.post("other", "other", "x")
    assert wire.sent == [("frozen", (0,)), ("other", ("x",))]


def test_messages_that_are_not_delivered_are_reported_and_the_next_go_on() -> None:
    wire = Wire()
    outboxes = boxes(wire)
    for item in "abc":
        outboxes.post(1, "one", item)
    wire.end(delivered=False)
    assert wire.lost == [("one", 1)]
    assert wire.sent[-1] == ("one", ("b", "c"))


def test_what_waits_is_bounded_and_what_is_given_up_is_reported() -> None:
    wire = Wire()
    outboxes = boxes(wire, max_waiting=10)
    for number in range(12):
        outboxes.post(1, "one", number)
    assert wire.lost == [("one", 10)] and outboxes.waiting(1) == 1


def test_a_transmission_that_ends_within_the_call_neither_recurses_nor_reorders() -> None:
    wire = Wire()
    outboxes = boxes(wire)
    for number in range(5 * MAX_BUNDLE):
        outboxes.post(1, "one", number)
    wire.at_once = True
    wire.end()
    assert [item for _, items in wire.sent for item in items] == list(range(5 * MAX_BUNDLE))
    assert max(len(items) for _, items in wire.sent) == MAX_BUNDLE
    assert len(outboxes) == 0


def test_what_waits_for_a_child_follows_it_to_its_real_address() -> None:
    wire = Wire()
    outboxes = boxes(wire)
    outboxes.post("being born", "child", "a")
    outboxes.post("being born", "child", "b")
    outboxes.rename("being born", "real")
    outboxes.post("real", "child", "c")
    assert wire.sent == [("child", ("a",))]
    wire.end()
    assert wire.sent[-1] == ("child", ("b", "c"))
    wire.end()
    assert len(outboxes) == 0


def test_a_bundle_as_text_has_none_of_its_messages():
    assert str(Bundle((b"x" * 10_000, b"y"))) == "a bundle of 2"
