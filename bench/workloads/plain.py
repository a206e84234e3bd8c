"""A load's file as plain text, for engines that read without Python: a sentence a line, or key TAB value."""

from __future__ import annotations

from pathlib import Path

from bench.workloads.loads import read

__all__ = ["plain"]


def plain(load: str | Path, path: str | Path) -> int:
    """Write the rows of file `load` into `path`; how many there are. Raises ValueError where a row would not survive."""
    rows = read(str(load))
    lines = [str(value) if key is None else f"{key}\t{value}" for key, value in rows]
    for line, (key, _) in zip(lines, rows):
        if "\n" in line or line.count("\t") != (key is not None) or '"' in line:
            raise ValueError(
                f"{load}: {line!r} holds a tab, a line break or a quote, and cannot be a line of plain text"
            )
    Path(path).write_text("".join(f"{line}\n" for line in lines))
    return len(rows)
