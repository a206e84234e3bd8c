"""Claims of papers as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["claim_lines"]


def claim_lines(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Three lines for each claim; its name and what a live run showed stand there where it has them."""
    said = []
    for claim in claims:
        name = f"{claim['claim']}: " if "claim" in claim else ""
        live = f"; live {claim['live']}" if "live" in claim else ""
        said += [
            f"{'reproduced    ' if claim['reproduced'] else 'NOT reproduced'} {name}{claim['text']}",
            f"    paper {claim['paper']}; reference {claim['reference']}; ours (sim) {claim['sim']}{live}",
            f"    counts as reproduced: {claim['counts_as']}",
        ]
    return said
