"""Claims of papers, each with a check in two columns, and as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["Checks", "Verdict", "claim_lines"]

#: figures for people, and whether they count as reproduced; None where a column has no such runs
Verdict = tuple[str, bool] | None


class Checks:
    """Claims of one paper: a decorator runs the check below it, for the columns reference and sim, and notes both in `found`."""

    def __init__(self, paper: str) -> None:
        self._paper = paper
        self.found: list[dict[str, Any]] = []

    def __call__(self, name: str, text: str, paper: str, counts_as: str) -> Callable[[Callable[[str], Verdict]], None]:
        """`text` says what is claimed, `paper` what the paper has; a claim that ours has no runs for is left out."""

        def run(check: Callable[[str], Verdict]) -> None:
            reference, sim = check("reference"), check("sim")
            if sim is not None:
                self.found.append(
                    {
                        "claim": f"{self._paper}.{name}",
                        "text": text,
                        "paper": paper,
                        "reference": reference[0] if reference else None,
                        "reference_holds": reference[1] if reference else None,
                        "sim": sim[0],
                        "live": None,
                        "counts_as": counts_as,
                        "reproduced": sim[1],
                    }
                )

        return run


def claim_lines(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Three lines for each claim; the reference, and what a live run showed, stand there where it has them."""
    said = []
    for claim in claims:
        reference = f"; reference {claim['reference']}" if "reference" in claim else ""
        live = f"; live {claim['live'] or 'not judged'}" if "live" in claim else ""
        said += [
            f"{'reproduced    ' if claim['reproduced'] else 'NOT reproduced'} {claim['claim']}: {claim['text']}",
            f"    paper {claim['paper']}{reference}; ours (sim) {claim['sim']}{live}",
            f"    counts as reproduced: {claim['counts_as']}",
        ]
    return said
