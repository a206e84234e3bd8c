"""The way to one replica of a unit: a route whose batches are accounted for in the replica's account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.channel import OutChannel
from esault.flow.channel.lineage import Lineage
from esault.flow.delivery.replica_acks import ReplicaAcks, for_replica
from esault.flow.send.route import Route
from esault.routing.table import OutputTable

__all__ = ["MutedChannel", "ReplicaRoute"]


class ReplicaRoute(Route):
    """Routes as the one inside does; what it opens is no part of the root's own account."""

    def __init__(self, inside: Route, replica: int, acks: ReplicaAcks) -> None:
        self._inside = inside
        self._replica = replica
        self._acks = acks

    def install(self, table: OutputTable, channels: Mapping[int, OutChannel]) -> None:
        self._inside.install(table, channels)

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        own = Lineage(for_replica(lineage.root, self._replica), lineage.due)
        self._inside.push(own, keys, values, ids, now)
        self._acks.fork(own.root, own.p, own.d)

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        own = Lineage(for_replica(lineage.root, self._replica), lineage.due)
        self._inside.push_arrays(own, batch, ids, now)
        self._acks.fork(own.root, own.p, own.d)


class _Nowhere:
    """A link that takes all and brings nothing."""

    def send(self, frame: bytes) -> bool:
        return True

    def finish(self) -> None:
        """Nothing was taken."""

    def close(self) -> None:
        """Nothing is open."""


class MutedChannel(OutChannel):
    """In place of the way to a replica's dead sub-unit, until it has a successor.

    Its rows are dropped, since the other replicas have them, but named in its account: what is dropped is never acked.
    """

    __slots__ = ()

    def __init__(self, *args: Any) -> None:
        incarnation, number, epoch, codec, settings, random64, unit = args
        super().__init__(incarnation, number, epoch, _Nowhere(), codec, settings, random64, unit)

    def add(
        self,
        lineage: Lineage,
        input: int,
        keys: Sequence[Any],
        values: Sequence[Any],
        ids: Sequence[str] | None,
        now: float,
    ) -> None:
        self._drop(lineage)

    def add_whole(
        self, lineage: Lineage, input: int, rows: int, keys: Any, values: Any, ids: Sequence[str] | None, now: float
    ) -> None:
        self._drop(lineage)

    def _drop(self, lineage: Lineage) -> None:
        id = self._random64()
        lineage.p ^= id
        lineage.d ^= id

    def put(self, kind: int, body: Any) -> int:
        return 0
