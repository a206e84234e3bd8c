"""The lineage of one batch: the two XORs of the ids that were opened while it was processed."""

from __future__ import annotations

from esault.flow.channel.frame import Root

__all__ = ["Lineage"]


class Lineage:
    """The root that rows descend from, and what came of them so far.

    The sender that opens a batch for these rows XORs its id into `p` and `d` once; a sink's mark goes into `d` alone,
    since its rows are taken over when they are written and complete when they are committed.
    """

    __slots__ = ("d", "due", "p", "root")

    def __init__(self, root: Root, due: float) -> None:
        self.root = root
        #: seconds since the epoch
        self.due = due
        self.p = 0
        self.d = 0
