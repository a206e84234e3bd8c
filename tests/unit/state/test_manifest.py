"""What a completed checkpoint is written as."""

from __future__ import annotations

import gc

from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Handle
from esault.state import manifest


def test_checkpoints_that_are_written_and_read_leave_nothing_to_the_collector(tmp_path):
    unit = CompletedUnit(
        kind="spout", objects="sub-unit", parallelism=1, chains=(), table=(), positions={0: b"\x93"}, sources={0: 1}
    )
    kept = CompletedCheckpoint(7, "r1", {"lines": unit}, (Handle("lines", "out", 7, ("part", 3)),), 9, 5.0, 6.0)
    path = tmp_path / "checkpoint"
    assert manifest.decode(manifest.encode(kept), path) == kept

    def left() -> int:
        """Return how many objects only the collector frees; a thread of another test may add some."""
        gc.collect()
        for _ in range(10):
            manifest.decode(manifest.encode(kept), path)
        return gc.collect()

    gc.disable()
    try:
        assert not all(left() for _ in range(10)), "a buffer of 64 KB each, until the collector comes"
    finally:
        gc.enable()
