"""Chained bolts in a row, in one loop: a tuple goes through all of them before the next one does, and no column stands between them.

It is done where each brings forth one tuple from one, with the same key, and nothing but what stands in their `process` runs meanwhile
(`topology/fused_map.py`). Where that is not so for a batch, each bolt takes it by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import length_hint
from typing import TYPE_CHECKING, Any

from esault.flow.channel.lineage import Lineage
from esault.flow.operators.operator import STOPPING
from esault.payload.scalars import all_scalars

if TYPE_CHECKING:
    from esault.flow.send.chained_bolt import ChainedBolt
    from esault.topology.fused_map import FusedMap
    from esault.topology.process_loop import ProcessLoop

__all__ = ["SAMPLED", "FusedBolts"]

#: of so many batches each bolt takes one by itself, which tells how the time is divided among them
SAMPLED = 64
#: batches of bolts that are written out, after which it is not looked again whether they can be fused
_TRIES = 8


class FusedBolts:
    """The loop of a chained bolt and those behind it, once there is one."""

    def __init__(self, head: ChainedBolt, clock: Callable[[], float], observed: Callable[[], bool]) -> None:
        """`observed`: what each bolt emits is looked at."""
        self._head = head
        self._clock = clock
        self._observed = observed
        self._bolts: list[ChainedBolt] = []
        self._mappings: list[ProcessLoop] = []
        self._loop: FusedMap | None = None
        self._tries = 0
        self._batches = 0
        #: of the time of a batch, by bolt
        self._shares: list[float] = []

    def push(self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], now: float) -> bool:
        """Process a batch, and pass on what comes of it; False where the bolts are to do that by themselves. Raises UserError."""
        if self._loop is None and not self._fuse(len(keys)):
            return False
        if self._observed() or not all_scalars(values):
            return False
        if [bolt.mapping(len(keys)) for bolt in self._bolts] != self._mappings:
            if any(bolt.apart for bolt in self._bolts):
                self._loop, self._tries = None, 0
            return False
        if self._batches % SAMPLED == 0:
            self._batches += 1
            self._shares = []
            return False
        assert self._loop is not None
        if not self._loop.holds():
            return False
        self._batches += 1
        begun, rows = self._clock(), iter(values)
        try:
            made = tuple(self._loop.run(rows))
        except STOPPING:
            raise
        except BaseException as error:
            bolt = self._bolts[self._loop.blame(error) or 0]
            raise bolt.failed(error, keys[len(keys) - length_hint(rows) - 1]) from error
        done = self._clock()
        for bolt, share in zip(self._bolts, self._shares or self._divided()):
            bolt.mapped(lineage, len(keys), share * (done - begun), done)
        self._bolts[-1].pass_on(lineage, keys, made, now)
        return True

    def _divided(self) -> list[float]:
        """Return how time is divided among the bolts, by what each took of a batch that they took by themselves."""
        whole = sum(bolt.last_took for bolt in self._bolts)
        count = len(self._bolts)
        self._shares = [bolt.last_took / whole if whole > 0 else 1 / count for bolt in self._bolts]
        return self._shares

    def _fuse(self, count: int) -> bool:
        """Look whether it can be done, once the bolts are written out; return whether it can."""
        if self._tries >= _TRIES or self._head.mapping(count) is None:
            return False
        self._tries += 1
        bolts, mappings = [], []
        bolt: ChainedBolt | None = self._head
        while bolt is not None and (mapping := bolt.mapping(count)) is not None:
            bolts.append(bolt)
            mappings.append(mapping)
            bolt = bolt.behind
        while len(bolts) > 1 and self._loop is None:
            from esault.topology.fused_map import fused_map  # it takes time to load, and few runs need it

            self._loop = fused_map(mappings)
            if self._loop is None:
                bolts.pop()
                mappings.pop()
        self._bolts, self._mappings, self._batches = bolts, mappings, 0
        return self._loop is not None
