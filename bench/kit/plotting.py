"""Plots as files, where matplotlib is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["NO_PLOTS", "pyplot", "saved"]

#: what is said where there is no matplotlib
NO_PLOTS = " (no plots: matplotlib is not installed)"


def pyplot() -> Any:
    """Matplotlib's pyplot, which shows nothing; None where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plots

    return plots


def saved(figure: Any, path: Path, **layout: Any) -> bool:
    """Write a figure and forget it; `layout` as `tight_layout` takes it. True."""
    from matplotlib import pyplot as plots

    figure.tight_layout(**layout)
    figure.savefig(path, dpi=110)
    plots.close(figure)
    return True
