"""Dead letters that are sent again: each as a root, refused with a reason, told of when all is done."""

from __future__ import annotations

from types import SimpleNamespace

from esault.flow.worker.sending_again import SendingAgain
from esault.messages.control import SendAgain, SendingBegan, SentAgain
from esault.payload.codec import Codec

CODEC = Codec()


class Roots:
    def __init__(self):
        self.opened = []
        self.done_at_once = False

    def open_beside(self, payload, now):
        self.opened.append((payload, now))
        return None if self.done_at_once else SimpleNamespace(done=False, payload=payload)


def bench(wants_id=False, cut=None):
    roots, said = Roots(), []
    outputs = SimpleNamespace(open_place=lambda place: place != "gone")
    made = SendingAgain(7, roots, outputs, CODEC, wants_id, lambda: 3.0, said.append, lambda: cut)
    return made, roots, said


def letter(id, *rows, place="input:0"):
    return id, place, CODEC.pack_value(rows)


def test_each_is_a_root_and_when_all_are_done_it_is_said_once():
    made, roots, said = bench(cut=4)
    made.begin(SendAgain(1, (letter("x", ("a", 1), ("b", 2)), letter("y", ("c", 3)))), "")
    assert [payload for payload, _ in roots.opened] == [
        [("input:0", ("a", "b"), (1, 2), None)],
        [("input:0", ("c",), (3,), None)],
    ]
    assert roots.opened[0][1] == 3.0
    assert said == [SendingBegan(7, 1, 4)]
    first, second = made.open[0][1]
    first.done = True
    made.look()
    assert len(said) == 1
    second.done = True
    made.look()
    made.look()
    assert said[1:] == [SentAgain(7, 1, ())]
    assert not made.open


def test_ids_follow_from_the_dead_letter_so_that_a_second_try_has_the_same():
    made, roots, _ = bench(wants_id=True)
    for number in (1, 2):
        made.begin(SendAgain(number, (letter("x", ("a", 1), ("b", 2)),)), "")
    assert [payload[0][3] for payload, _ in roots.opened] == [("x.0", "x.1")] * 2


def test_what_cannot_be_sent_is_told_with_the_reason_and_the_others_go():
    made, roots, said = bench()
    made.begin(
        SendAgain(1, (letter("x", ("a", 1), place="gone"), ("y", "input:0", b"\xc1"), letter("z", ("a", 1)))), ""
    )
    assert len(roots.opened) == 1
    made.open[0][1][0].done = True
    made.look()
    (_, x), (_, y) = said[1].refused
    assert x == "the topology has no such place any more"
    assert y.startswith("its tuple cannot be read: ")
    assert said[0] == SendingBegan(7, 1, 0)


def test_where_nothing_may_be_sent_all_are_refused_at_once():
    made, roots, said = bench()
    made.begin(SendAgain(1, (letter("x", ("a", 1)), letter("y", ("a", 1)))), "it is ending")
    assert not roots.opened
    assert said == [SendingBegan(7, 1, 0), SentAgain(7, 1, (("x", "it is ending"), ("y", "it is ending")))]


def test_what_is_done_at_once_is_not_waited_for_and_requests_end_by_themselves():
    made, roots, said = bench()
    made.begin(SendAgain(1, (letter("x", ("a", 1)),)), "")
    roots.done_at_once = True
    made.begin(SendAgain(2, (letter("y", ("a", 1)),)), "")
    assert said[-1] == SentAgain(7, 2, ())
    assert [number for number, _, _ in made.open] == [1]
