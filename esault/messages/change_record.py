"""The record of a change that has ended: what reports, policies and metrics read of it."""

from __future__ import annotations

from esault.value_class import value_class

__all__ = ["ChangeRecord"]


@value_class(frozen=True)
class ChangeRecord:
    """A change that has ended, for reports."""

    #: seconds since the epoch when it was asked for
    at: float
    unit: str
    #: "split", "merge", "move" or "rescale"
    kind: str
    before: int
    after: int
    reason: str
    policy: str
    moved_keys: int
    moved_bytes: int
    #: the longest that a row of a moved key was held because of it
    held: float
    #: from the request to the end
    seconds: float
    #: why it was dropped; empty if it was not
    dropped: str = ""
    #: from the request until new sub-units stood ready and the table was published: nothing waits in that time
    prepared: float = 0.0
    #: of the request, as it was given when the change began; changes of replicas that one request began have the same
    id: int = 0
