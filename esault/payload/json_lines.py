"""Many JSON texts, decoded as one: objects share the names of their fields, and the decoder is called once."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from esault.payload.json_decoder import quick_decoder

__all__ = ["decode_each"]

#: what `json.loads` calls, without its look for blanks around the value
_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]

#: stands between two texts; drawn anew in each process, so that no text has it
_NUMBER = secrets.randbits(62)
_BETWEEN = f",{_NUMBER},"


def decode_each(texts: Sequence[str], halves: bool = True) -> list[Any] | None:
    """Return what `json.loads` makes of each text; None where that is to be asked for each by itself, as where one is no JSON.

    Without `halves` also where a text may name half a character.
    """
    quick = quick_decoder()
    try:
        text = f"[{_BETWEEN.join(texts)}]"
        if quick is None and not halves and "\\u" in text:
            return None
        # A value that goes on over two texts has the number between them in it, and not behind it.
        found, end = _decoded(text, quick, halves)
    except Exception:  # what it is, and in which text, is found one by one
        return None
    values, between = found[::2], found[1::2]
    if end != len(text) or len(values) != len(texts) or between != [_NUMBER] * (len(texts) - 1):
        return None
    return values


def _decoded(text: str, quick: Callable[[str | bytes], Any] | None, halves: bool) -> tuple[list[Any], int]:
    if quick is not None:
        try:
            return quick(text), len(text)
        except (ValueError, RecursionError):
            if not halves:
                raise
    # It takes what the quick one refuses: NaN, numbers beyond a double, halves of characters.
    return _scan(text, 0)
