"""Answers after which a request is worth repeating, and when."""

from __future__ import annotations

import math
import time
from email.utils import parsedate_to_datetime

__all__ = ["PASSING", "retry_after"]

#: answers that may be others later, besides 5xx
PASSING = (408, 425, 429)


def retry_after(header: str | None) -> float | None:
    """Return the seconds that Retry-After asks for: a number, or a date; None: none."""
    if header is None:
        return None
    try:
        seconds = float(header)
        return max(0.0, seconds) if math.isfinite(seconds) else None  # "inf" would be waited for without end
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
