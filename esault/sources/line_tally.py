"""Counts what a source leaves out, and says so once: silence would look like all is well."""

from __future__ import annotations

import logging

__all__ = ["LineTally"]

_WORDS = {
    "undecodable_lines_skipped": "a line that is no text in this encoding was left out",
    "long_lines_skipped": "a line longer than max_line was left out",
    "long_lines_truncated": "a line longer than max_line was cut short",
    "bad_lines_skipped": "a line that makes no row was left out",
}


class LineTally:
    """The number of lines left out or cut short, by reason. The first of each reason is logged."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(_WORDS, 0)
        self.logger = logging.getLogger(__name__)

    def note(self, reason: str, name: str, offset: int, detail: str = "") -> None:
        """One more; it starts at byte `offset` of `name`."""
        self.counts[reason] += 1
        if self.counts[reason] == 1:
            detail = f" ({detail})" if detail else ""
            self.logger.warning(
                "%s, byte %d: %s%s; further ones are only counted", name, offset, _WORDS[reason], detail
            )
