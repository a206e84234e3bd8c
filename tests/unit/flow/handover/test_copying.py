"""A replica's state copied to another: that of one moment, asked for first, no more on its way than may be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.channel.frame import ROWS, STATE, STATE_END
from esault.flow.handover.copying import Copying
from esault.flow.handover.state_sender import PORTION_BYTES, PORTION_KEYS
from esault.flow.handover.unconfirmed import AGAIN, UNCONFIRMED_BYTES
from esault.routing.ring import INT_MAX, RING, position
from esault.testing.manual_clock import ManualClock

NUMBER, NEW, OTHER = 9, 20, 21


class Post:
    def __init__(self):
        self.sent = []

    def put(self, kind, body):
        self.sent.append((kind, body))

    def of(self, kind):
        return [body for sent, body in self.sent if sent == kind]

    def items(self):
        return [item for _, _, items in self.of(STATE) for item in items]


class Source(dict):
    def names(self):
        return list(self)

    def key_of(self, name):
        return name

    name_of = key_of
    peek = dict.get


def copying(source, moves=((0, INT_MAX, NEW),), news=(NEW,)):
    posts, fences = {new: Post() for new in news}, []
    made = Copying(NUMBER, moves, posts, Source(source), lambda: 0.0, lambda *fence: fences.append(fence))
    return made, posts, fences


def confirm(made, posts):
    for new, post in posts.items():
        ends = [last + 1 for _, last, _ in post.of(STATE_END)]
        for number in (0, *(number for _, number, _ in post.of(STATE)), *ends):
            made.got(new, number)


def test_all_that_had_state_goes_and_the_end_says_how_many_portions_there_were():
    made, posts, fences = copying({"a": b"1", "b": b"2"})
    post = posts[NEW]
    assert post.of(ROWS) == [(NUMBER, ())]
    assert not made.done
    made.send()
    assert not post.of(STATE_END)  # nothing is written yet
    made.snapshot.all()
    made.send()
    assert dict(post.items()) == {"a": b"1", "b": b"2"}
    assert post.of(STATE_END) == [(NUMBER, 1, 1)]
    assert fences == [(NUMBER, 1), (NUMBER, 2)]
    made.send()
    assert len(post.of(STATE_END)) == 1
    assert not made.done
    made.got(NEW, 7)
    made.got(NEW, 1)
    assert not made.done
    confirm(made, posts)
    assert made.done


def test_what_is_not_confirmed_goes_again():
    clock, post = ManualClock(), Post()
    made = Copying(NUMBER, ((0, INT_MAX, NEW),), {NEW: post}, Source({"a": b"1"}), clock, lambda *fence: None)
    made.snapshot.all()
    made.send()
    first = list(post.sent)
    assert [kind for kind, _ in first] == [ROWS, STATE, STATE_END]
    made.got(NEW, 0)
    clock.advance(AGAIN - 0.1)
    made.send()
    assert post.sent == first
    clock.advance(0.2)
    made.send()
    assert post.sent == [*first, *first[1:]]


def test_the_state_is_that_of_the_mark_whatever_is_processed_meanwhile():
    made, posts, _ = copying({"a": b"1", "b": b"2"})
    source = made._source
    made.snapshot.before(["a"])
    source["a"] = b"changed"
    source["new"] = b"behind the mark"
    made.snapshot.all()
    made.send()
    assert dict(posts[NEW].items()) == {"a": b"1", "b": b"2"}


def test_an_element_that_went_meanwhile_is_told_of_without_state():
    made, posts, _ = copying({"a": b"1"})
    made._source.clear()
    made.snapshot.all()
    made.send()
    assert posts[NEW].items() == [("a", b"")]


def test_what_is_asked_for_goes_first_and_of_what_was_not_there_it_is_said_so():
    made, posts, _ = copying({name: name.encode() for name in "abcde"})
    made.snapshot.before(["a"])  # written, and on its way with the rest
    made.fetch(NEW, ["d", "x", "a"])
    made.send()
    assert posts[NEW].items() == [("d", b"d"), ("x", b""), ("a", b"a")]
    made.snapshot.all()
    made.send()
    assert sorted(posts[NEW].items()[3:]) == [("b", b"b"), ("c", b"c"), ("e", b"e")]


def test_keys_go_to_the_one_whose_ranges_they_are_in_and_others_stay():
    keys = [f"key {i}" for i in range(100)]
    half, quarter = RING // 2, RING // 4
    made, posts, _ = copying(dict.fromkeys(keys, b"s"), ((0, quarter - 1, NEW), (half, INT_MAX, OTHER)), (NEW, OTHER))
    made.snapshot.all()
    made.send()
    at = {key: position(key) for key in keys}
    assert {key for key, _ in posts[NEW].items()} == {key for key in keys if at[key] < quarter}
    assert {key for key, _ in posts[OTHER].items()} == {key for key in keys if at[key] >= half}
    assert len(posts[NEW].of(STATE_END)) == len(posts[OTHER].of(STATE_END)) == 1
    confirm(made, {NEW: posts[NEW]})
    assert not made.done
    confirm(made, posts)
    assert made.done


@given(st.lists(st.integers(1, PORTION_BYTES), min_size=1, max_size=40))
def test_no_more_is_on_its_way_than_may_be_and_nothing_is_lost(sizes):
    source = {f"k{i}": bytes(size) for i, size in enumerate(sizes)}
    made, posts, _ = copying(source)
    post = posts[NEW]
    made.snapshot.all()
    for _ in range(len(sizes) + 1):
        made.send()
        flying = [
            sum(len(state) + 16 for _, state in items)
            for _, number, items in post.of(STATE)
            if (NEW, number) in made._out._kept
        ]
        assert sum(flying[:-1]) < UNCONFIRMED_BYTES
        assert made.full is (sum(flying) >= UNCONFIRMED_BYTES)
        for _, _, items in post.of(STATE):
            assert sum(len(state) + 16 for _, state in items[:-1]) < PORTION_BYTES
        confirm(made, posts)
    assert dict(post.items()) == source
    assert len(post.items()) == len(source)
    assert [number for _, number, _ in post.of(STATE)] == list(range(1, len(post.of(STATE)) + 1))
    assert made.done


def test_a_portion_has_a_bounded_number_of_keys():
    made, posts, _ = copying({str(i): b"" for i in range(PORTION_KEYS + 1)})
    made.snapshot.all()
    made.send()
    assert [len(items) for _, _, items in posts[NEW].of(STATE)] == [PORTION_KEYS, 1]


def test_what_is_given_up_is_not_sent():
    made, posts, _ = copying({"a": b"1", "b": b"2"})
    made.snapshot.before(["b"])
    made.fetch(NEW, ["a"])
    made.drop()
    made.send()
    assert not posts[NEW].of(STATE)
