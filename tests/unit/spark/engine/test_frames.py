"""Frames of many tuples, as they are packed, put in order and read."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from esault.errors import PayloadError
from esault.flow.channel.lineage import Lineage
from esault.payload.codec import Codec
from esault.spark.engine.frames import Outbox, batches_of, in_order

ROOT = (0, 0, 0)


def sent(codec: Codec, rows: int) -> list[bytes]:
    """The frames of so many words, as another process has sent them."""
    outbox = Outbox(codec)
    outbox.begin("a/0", 0, 1.0)
    port = outbox.port("split", 3, "count")
    for first in range(0, rows, 512):
        words = [f"word-{row}" for row in range(first, min(rows, first + 512))]
        port.add(Lineage(ROOT, 1.0), 0, words, [1] * len(words), None, 1.0)
    return [frame for group, frame in outbox.pop_sealed(flush=True) if group == 3]


def test_rows_come_back_in_the_order_in_which_they_were_sent() -> None:
    codec = Codec()
    frames = sent(codec, 20_000)
    random.Random(1).shuffle(frames)
    batches = [batch for frame in in_order(list(map(codec.unpack, frames))) for batch in batches_of(codec, frame[5])]
    assert [key for _, _, keys, _, _ in batches for key in keys] == [f"word-{row}" for row in range(20_000)]


def test_frames_that_are_put_in_order_take_no_more_than_they_do_packed() -> None:
    codec = Codec()
    frames = sent(codec, 100_000)
    tracemalloc.start()
    try:
        ordered = in_order(list(map(codec.unpack, frames)))
        assert tracemalloc.get_traced_memory()[1] < 1.2 * sum(map(len, frames)) + (1 << 16)
        assert len(ordered) > 10
    finally:
        tracemalloc.stop()


def test_what_cannot_travel_is_refused_with_its_unit_and_key() -> None:
    outbox = Outbox(Codec())
    outbox.begin("a/0", 0, 1.0)
    port = outbox.port("split", 3, "count")
    port.add(Lineage(ROOT, 1.0), 0, ["a", "b"], [1, (each for each in "ab")], None, 1.0)
    with pytest.raises(PayloadError, match="unit 'split' emitted a tuple with key 'b' whose value is refused"):
        list(outbox.pop_sealed(flush=True))
