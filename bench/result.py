"""A result on disk: result.json, a table to read, a plot to look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["write"]


def write(out: str, result: dict[str, Any], lines: list[str], bars: dict[str, dict[str, float]], unit: str) -> None:
    """Write into folder `out`. `bars`: for each group, figures by name; drawn where matplotlib is installed."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    (folder / "result.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    try:
        import matplotlib
    except ImportError:
        print("(no plot: matplotlib is not installed)")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(bars), figsize=(4.5 * len(bars), 3.5), squeeze=False)
    for place, (group, figures) in zip(axes[0], bars.items()):
        place.barh(list(figures), list(figures.values()), color="#4477aa")
        place.set_title(group, fontsize=10)
        place.set_xlabel(unit)
        place.invert_yaxis()
    figure.tight_layout()
    figure.savefig(folder / "result.png", dpi=110)
    pyplot.close(figure)
    print(f"{folder}/result.json, result.txt, result.png")
