"""`Delivery`: what a run promises about each tuple."""

from __future__ import annotations

from enum import Enum

__all__ = ["Delivery"]


class Delivery(str, Enum):
    """The promise of a run. The values are the words in settings, and what travels between hosts."""

    #: acks and replays: each tuple is processed once or more
    AT_LEAST_ONCE = "alo"
    #: acks, replays and checkpoints: state and tables as if each tuple were processed once
    EXACTLY_ONCE = "eo"
    #: neither acks nor replays
    NONE = "none"

    #: the plain word, in messages as in texts
    __str__ = str.__str__

    @classmethod
    def _missing_(cls, value: object) -> Delivery:
        words = ", ".join(repr(each.value) for each in cls)
        raise ValueError(f"delivery={value!r} is unknown; write one of {words}")
