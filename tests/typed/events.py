"""Events that pydantic checks: clicks to a JSON lines file, what is no event left out and counted."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import pydantic

from esault import Topology, skip
from esault.sinks import JsonLines
from esault.sources import JsonFiles


class Place(pydantic.BaseModel):
    city: str
    position: tuple[float, float]


class Event(pydantic.BaseModel):
    id: UUID
    kind: Literal["click", "view"]
    at: datetime
    seconds: Annotated[float, pydantic.Field(ge=0)]
    tags: set[str] = set()
    place: Place | None = None


def topology(path: str = "events.jsonl", out: str = "out/events.jsonl") -> Topology:
    t = Topology("events")
    events = t.spout("lines", JsonFiles(path)).map(Event.model_validate, on_error=skip())
    events.filter(lambda event: event.kind == "click").sink("clicks", JsonLines(out, mode="replace"))
    return t
