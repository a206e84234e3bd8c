"""Packages that look installed, for tests of entry points."""

from __future__ import annotations

import textwrap
from pathlib import Path


def install(folder: Path, name: str, source: str, group: str, **points: str) -> None:
    """A package of one module `name` in this folder, which must be on `sys.path`: entry points by name."""
    (folder / f"{name}.py").write_text(textwrap.dedent(source))
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "\n".join(f"{point} = {name}:{attribute}" for point, attribute in points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")
