"""Posts wait in their order, bounded, and are durable when all of their rows are."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from esault.connectors.http import posts as module
from esault.connectors.http.posts import Post, Posts

MOST_ROWS, MOST_BYTES = 8, 100


class Queue(RuleBasedStateMachine):
    """Beside plain lists."""

    def __init__(self):
        super().__init__()
        self.posts = Posts(MOST_ROWS, MOST_BYTES)
        self.taken: list[Post] = []
        self.names: list[str] = []
        #: post -> how many rows had been put behind it
        self.ends: dict[Post, int] = {}
        self.put_rows = self.given = self.settled = 0

    @rule(count=st.integers(1, 5), size=st.integers(0, 60))
    def put(self, count, size):
        name = f"p{len(self.taken)}"
        post = Post(name, [(name, number) for number in range(count)], size)
        waiting = sum(
            each.size for each in self.taken if self.ends[each] > self.given
        )  # one that is given in part still lies here
        room = self.put_rows - self.given < MOST_ROWS and waiting < MOST_BYTES
        assert self.posts.put(post, None) is room
        if room:
            self.taken.append(post)
            self.put_rows += count
            self.ends[post] = self.put_rows
            self.names += [f"{name}/{number}" for number in range(count)]

    @rule(limit=st.integers(0, 7))
    def take(self, limit):
        rows = self.posts.take(limit)
        assert len(rows) == min(limit, self.put_rows - self.given)
        assert self.posts.names() == self.names[self.given : self.given + len(rows)]
        assert [f"{name}/{number}" for name, number in rows] == self.posts.names()
        self.given += len(rows)
        assert self.posts.given == self.given

    @rule(behind=st.integers(0, 6))
    def settle(self, behind):
        self.settled = max(self.settled, self.given - behind)
        self.posts.settle(self.given - behind)

    @invariant()
    def those_are_durable_whose_rows_all_are(self):
        assert len(self.posts) == self.put_rows - self.given
        for post in self.taken:
            assert post.durable.done() is (self.ends[post] <= self.settled)

    def teardown(self):
        self.posts.give_up()
        assert not self.posts.put(Post("late", [("late", 0)], 1), None)
        for post in self.taken:
            assert post.durable.result(0) is (self.ends[post] <= self.settled)


TestQueue = Queue.TestCase


def test_the_oldest_idempotency_keys_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    posts = Posts(100, 100)
    made = [Post(name, [(name, 0)], 1) for name in "abc"]
    for post in made:
        assert posts.put(post, post.name)
    assert [posts.known(name) for name in "abcd"] == [None, made[1], made[2], None]
