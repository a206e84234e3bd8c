"""Hooks whose parameters have names of their own, for a type checker; `# misfit` marks each line where it must find one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from esault import BatchBolt, Bolt, Context, Grouping, Sink, SplitReader, SplitSource, Spout, Topology, by_key


class A(Bolt[str, int, str, int]):
    def open(self, ctx: Context) -> None: ...
    def process(self, word: str, n: int) -> None:
        self.emit(word, n)

    def process_stream(self, name: str, word: str, n: int) -> None: ...
    def process_broadcast(self, k: str, rule: int) -> None: ...
    def tick(self, t: float) -> None: ...
    def on_timer(self, which: str, when: float) -> None: ...


class B(Bolt[str, int, str, int]):
    async def process(self, _key: str, customer: int) -> None:
        await asyncio.sleep(0)


class C(BatchBolt[str, int, str, int]):
    def process_batch(self, pairs: Sequence[tuple[str, int]]) -> None: ...
    def process_columns(self, words: Sequence[str], counts: Sequence[int]) -> None: ...
    def tick(self, t: float) -> None: ...
    def open(self, c: Context) -> None: ...


class S(Spout[str, int]):
    def open(self, c: Context) -> None: ...
    def read(self, n: int) -> list[tuple[str, int]]:
        return []

    def position(self) -> int:
        return 1

    def seek(self, pos: Any) -> None: ...
    def commit(self, pos: Any) -> None: ...


class R(SplitReader[str, int]):
    def read(self, n: str) -> list[tuple[str, int]]:  # misfit
        return []

    def position(self) -> int:
        return 0

    def commit(self, p: Any) -> None: ...


class SS(SplitSource[str, int]):
    def splits(self) -> list[str]:
        return ["a"]

    def open_split(self, name: str, where: Any) -> R:
        return R()

    def open_added_split(self, name: str) -> R:
        return R()


class K(Sink):
    def open(self, c: Context) -> None: ...
    def write(self, records: Any) -> None: ...
    def prepare(self, e: int) -> Any: ...
    def commit(self, number: int, what: Any) -> None: ...


class G(Grouping):
    def choose(self, k: Any, v: Any, n: int) -> int | Sequence[int]:
        return 0


def topology() -> Topology:
    t = Topology("x")
    s = t.spout("s", S())
    s.bolt("a", A, grouping=by_key()).bolt("b", B, grouping=by_key()).sink("k", K())
    s.bolt("c", C, grouping=G())
    t.spout("ss", SS()).bolt("a2", A, grouping=by_key())
    return t
