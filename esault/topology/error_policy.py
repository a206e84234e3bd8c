"""Policies for errors that user code raises."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ErrorPolicy", "dead_letter", "fail", "skip"]


@dataclass(frozen=True)
class ErrorPolicy:
    """After `retries` further tries in place: "fail", "skip" or "dead_letter" (to `path`)."""

    kind: str
    retries: int = 0
    #: of a dead letter file, JSON lines; every sub-unit appends to a file of its own beside it
    path: str | None = None


def fail(retries: int = 0) -> ErrorPolicy:
    """Stop the topology with the user's traceback. The default."""
    return ErrorPolicy("fail", retries)


def skip(retries: int = 0) -> ErrorPolicy:
    """Count the tuple as an error and go on."""
    return ErrorPolicy("skip", retries)


def dead_letter(path: str, retries: int = 0) -> ErrorPolicy:
    """Keep tuple and traceback in a JSON lines file, durable before the tuple is acked, and go on."""
    return ErrorPolicy("dead_letter", retries, str(path))
