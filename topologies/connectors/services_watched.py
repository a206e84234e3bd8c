"""Web services that are asked again and again: when one stops to answer, when it is back, and each morning how often it was away.

Shows `Ticker` and `Cron`, and a bolt that waits for answers. Out come `out/changes.jsonl`, a line whenever a service goes away or comes
back, and `out/days.jsonl`, a line for each of them at six o'clock.

    pip install 'esault[cron,http]'
    esault run topologies/connectors/services_watched.py --checkpoint 10 --set services=https://example.org,http://localhost:8000
    tail -f out/changes.jsonl                  # in another terminal
"""

import asyncio

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Cron, Ticker

__all__ = ["topology"]


class Ask(Bolt):
    """Asks a service; whether it has answered with less than 500."""

    async def open_shared(self, context):
        import aiohttp

        return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10))

    async def close_shared(self, session):
        await session.close()

    async def process(self, url, due):
        import aiohttp

        try:
            async with self.context.shared.get(url) as answer:
                well = answer.status < 500
        except (aiohttp.ClientError, asyncio.TimeoutError):
            well = False
        self.emit(url, {"at": due, "well": well})


class Watch(Bolt):
    """State of one service: whether it answers, and how often it was away since the last report."""

    def __init__(self):
        self.well, self.times_away = True, 0

    def process(self, url, said):
        if said == "report":
            self.emit(url, {"times_away": self.times_away}, stream="days")
            self.times_away = 0
        elif said["well"] != self.well:
            self.well = said["well"]
            self.times_away += not self.well
            self.emit(url, said)


def topology(
    services: list[str] = ["https://example.org"],  # noqa: B006
    every: float = 30.0,
    morning: str = "0 6 * * *",
    out: str = "out",
    name: str = "services_watched",
) -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    due = t.spout("due", Ticker(every)).flat_map(lambda at: [(url, at) for url in services])
    asked = due.key_by(lambda each: each[0]).map(lambda each: each[1]).bolt("ask", Ask, by_key(), concurrency=20)
    reports = t.spout("mornings", Cron(morning)).flat_map(lambda at: list(services)).key_by(lambda url: url)
    watch = asked.union(reports.map(lambda url: "report")).bolt("watch", Watch, by_key(), streams=("days",))
    watch.sink("changes", JsonLines(f"{out}/changes.jsonl"))
    watch["days"].sink("days", JsonLines(f"{out}/days.jsonl"))
    return t
