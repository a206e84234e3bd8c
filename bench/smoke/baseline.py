"""The guard's figures when they were last accepted: a file for each version of Python, and the comparison with it."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "Line", "compare", "elsewhere", "grown", "nearest", "others", "read", "version", "write"]

FOLDER = Path(__file__).parents[1] / "results" / "smoke"
#: a figure that grows by more than this share is a loss
TOLERANCE = 0.03
#: ... and by more than this: what is next to nothing may double
LEAST = {"bytecodes": 0.05, "Python calls": 0.005, "C calls": 0.005, "peak memory": 16.0}
#: bytecodes a tuple below which a function is not worth a line
NEGLIGIBLE = 0.1


@dataclass(frozen=True)
class Line:
    """A figure and what is thought of it."""

    workload: str
    what: str
    #: None: there is none
    baseline: float | None
    #: None: it was not measured
    now: float | None
    #: "same", "gain", "LOSS", "NEW" (there is nothing to compare it with, and there should be), "skipped", "no baseline"
    verdict: str
    #: growth that passes, as a share
    allowed: float = TOLERANCE

    @property
    def change(self) -> float | None:
        """0.03 is 3 % more."""
        if not self.baseline or self.now is None:
            return None
        return self.now / self.baseline - 1

    @property
    def failed(self) -> bool:
        """Return whether this fails the whole."""
        return self.verdict in ("LOSS", "NEW")


def version() -> str:
    """Of this interpreter, as far as counts depend on it: "3.11"; "PyPy 3.10" where it is no CPython."""
    number = ".".join(platform.python_version_tuple()[:2])
    name = platform.python_implementation()
    return number if name == "CPython" else f"{name} {number}"


def _path(of: str, folder: Path | None) -> Path:
    return (folder or FOLDER) / f"baseline-{of}.json"


def read(of: str, folder: Path | None = None) -> dict[str, Any] | None:
    """The baseline of this version; None where there is none. Raises ValueError for a file that is no baseline."""
    path = _path(of, folder)
    if not path.exists():
        return None
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        if not all(isinstance(found[part], dict) for part in ("workloads", "functions", "ratios")):
            raise TypeError("parts are missing")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no baseline ({error}); make it anew with python -m bench.smoke --renew") from None
    return found


def write(of: str, baseline: Mapping[str, Any], folder: Path | None = None) -> Path:
    """Figures to four places, functions that matter."""
    functions = {
        name: {f: round(n, 4) for f, n in sorted(each.items()) if n >= NEGLIGIBLE}
        for name, each in baseline["functions"].items()
    }
    figures = {name: {what: round(n, 4) for what, n in each.items()} for name, each in baseline["workloads"].items()}
    ratios = {name: round(n, 3) for name, n in baseline["ratios"].items()}
    path = _path(of, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({**baseline, "workloads": figures, "ratios": ratios, "functions": functions}, indent=1) + "\n"
    )
    return path


def others(of: str, folder: Path | None = None) -> list[str]:
    """Versions but this one that have a baseline, the oldest first."""
    found = [path.stem.removeprefix("baseline-") for path in (folder or FOLDER).glob("baseline-*.json")]
    return sorted({*found} - {of}, key=_order)


def _order(of: str) -> tuple[int, ...]:
    return tuple(int(part) for part in of.rpartition(" ")[2].split(".") if part.isdecimal())


def nearest(of: str, folder: Path | None = None) -> str | None:
    """That version with a baseline which comes next to this one; None where no version has one."""
    here = _order(of)
    return min(others(of, folder), key=lambda each: abs(_order(each)[-1] - here[-1]), default=None)


def compare(
    baseline: Mapping[str, Any] | None, now: Mapping[str, Mapping[str, float]], skipped: Mapping[str, str]
) -> list[Line]:
    """Counts with those of the baseline, if there is one; `skipped`: workload -> why it was not run. What is new in the baseline's
    place fails: it would never be compared."""
    lines = []
    for name, figures in now.items():
        known = baseline["workloads"].get(name, {}) if baseline is not None else {}
        for what, figure in figures.items():
            before = known.get(what)
            if baseline is None:
                verdict = "no baseline"
            elif before is None:
                verdict = "NEW"
            else:
                verdict = _verdict(before, figure, max(TOLERANCE * before, LEAST[what]))
            lines.append(Line(name, what, before, figure, verdict))
    lines += [Line(name, why, None, None, "skipped") for name, why in skipped.items()]
    return lines


def _verdict(before: float, now: float, allowed: float) -> str:
    if now - before > allowed:
        return "LOSS"
    return "gain" if before - now > allowed else "same"


def elsewhere(baseline: Mapping[str, Any], machine: Mapping[str, Any]) -> list[str]:
    """In what the machine differs from the baseline's that can change a count: Python and packages, as "msgpack 1.0.8, now 1.1.0"."""
    then = baseline.get("machine", {})
    before, now = [{"Python": m.get("python"), **m.get("packages", {})} for m in (then, machine)]
    matter = ("Python", "msgpack", "sortedcontainers", "pyarrow")
    return [f"{name}: {before.get(name)}, now {now.get(name)}" for name in matter if before.get(name) != now.get(name)]


def grown(
    baseline: Mapping[str, Any], workload: str, functions: Mapping[str, float], most: int = 5
) -> list[tuple[str, float]]:
    """Functions that execute more bytecodes a tuple than they did, and how many more; the most first."""
    before = baseline["functions"].get(workload, {})
    more = [(name, n - before.get(name, 0.0)) for name, n in functions.items()]
    return sorted([each for each in more if each[1] >= NEGLIGIBLE], key=lambda each: -each[1])[:most]
