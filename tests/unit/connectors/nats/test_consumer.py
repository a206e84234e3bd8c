"""A consumer of NATS over a client that is made up."""

from __future__ import annotations

import asyncio
from typing import Any

from esault.connectors.nats.client import Stream
from esault.connectors.nats.consumer import Consumer


class _Subscription:
    async def unsubscribe(self) -> None:
        """Nothing."""


class _Connection:
    is_closed = False

    def __init__(self) -> None:
        self.came: Any = None

    def new_inbox(self) -> str:
        return "inbox"

    async def subscribe(self, inbox: str, cb: Any) -> _Subscription:
        self.came = cb
        return _Subscription()

    async def publish(self, *said: Any) -> None:
        """Nothing comes of it."""


class _Client:
    api = "$JS.API"

    def __init__(self) -> None:
        self.connection, self.lost, self.tasks = _Connection(), set[Any](), list[Any]()

    def submit(self, work: Any) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def connected(self) -> _Connection:
        return self.connection

    async def stream(self, name: str) -> Stream:
        return Stream("made", 1, 2, 0, {})

    async def request(self, what: str, **said: Any) -> Any:
        return {"name": "consumer", "num_pending": 2}

    def back(self) -> None:
        """It has answered."""


class _Message:
    def __init__(self, number: int) -> None:
        self.reply, self.data, self.headers = f"$JS.ACK.S.consumer.1.{number}.{number}.0.{2 - number}", b"", None


class _End:
    """That nothing more is there."""

    def __init__(self) -> None:
        self.reply, self.data, self.headers = "", b"", {"Status": "408"}


async def _ended(turns: int) -> tuple[bool, set[Any]]:
    client = _Client()
    consumer = Consumer(client, "S", None, "made", 1, 2)  # type: ignore[arg-type]
    while client.connection.came is None or not client.lost:
        await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    await client.connection.came(_Message(1))
    await client.connection.came(_Message(2))
    await client.connection.came(_End())  # wakes it ...
    stopping = asyncio.ensure_future(consumer.stop())  # ... in the turn in which it is stopped
    task = client.tasks[0]
    for _ in range(50):
        await asyncio.sleep(0)
    over = task.done()
    task.cancel()
    stopping.cancel()
    await asyncio.gather(task, stopping, return_exceptions=True)
    return over, client.lost


def test_one_that_is_stopped_in_the_turn_in_which_something_comes_has_ended():
    for turns in range(8):
        assert asyncio.run(_ended(turns)) == (True, set())
