"""Edits of Wikipedia as they happen, by server-sent events: how many each wiki has had, those of bots left out.

Shows `SseSource`. Out comes `out/edits.jsonl`: a line with the new number of a wiki each time that it is edited. The service
keeps events for days and goes on behind the last id: with checkpoints each edit counts once, through kills and pauses.

    esault run topologies/connectors/sse_edits.py --checkpoint 1          # Ctrl-C pauses it; --resume goes on
    tail -f out/edits.jsonl                                               # in another terminal

Without the internet any service of the same form will do: `--set url=http://localhost:8000/edits`, with events such as

    id: 17
    data: {"type": "edit", "wiki": "nlwiki", "user": "ada", "bot": false, "title": "Delft"}
"""

from esault import Topology
from esault.sinks import JsonLines
from esault.sources import SseSource

__all__ = ["topology"]

EDITS = "https://stream.wikimedia.org/v2/stream/recentchange"


def by_people(event):
    """Return whether it is an edit, and not a bot's."""
    return event.get("type") == "edit" and not event.get("bot")


def topology(url: str = EDITS, out: str = "out/edits.jsonl", name: str = "sse_edits") -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    # Wikimedia asks clients to say who they are.
    events = t.spout("events", SseSource(url, headers={"User-Agent": "eSault's gallery of topologies"}))
    edits = events.filter(by_people).key_by(lambda event: event["wiki"])
    edits.reduce("number", lambda number, event: number + 1, initial=0).sink("numbers", JsonLines(out, mode="replace"))
    return t
