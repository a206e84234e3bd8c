"""`esault new`."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import click

from esault.errors import UsageError

__all__ = ["command"]

_TEXT = '''"""Count words, live.

    esault run {name}
    esault run {name} --set path='*.txt'
"""

from esault import Bolt, Topology, by_key, run, shuffle
from esault.sinks import JsonLines
from esault.sources import TextFiles


class Split(Bolt):
    """One object per sub-unit: it keeps nothing."""

    def process(self, key, value):
        for word in value.lower().split():
            self.emit(word, 1)


class Count(Bolt):
    """One object per word. Its attributes are that word's state."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value

    def finish(self):
        self.emit(self.key, self.total)


def topology(path: str = __file__, out: str = "out/words.jsonl") -> Topology:
    t = Topology("{topology}")
    lines = t.spout("lines", TextFiles(path))
    words = lines.bolt("split", Split, grouping=shuffle())
    counts = words.bolt("count", Count, grouping=by_key(), max_parallelism=8)
    counts.sink("words", JsonLines(out, mode="replace"))
    return t


if __name__ == "__main__":
    print(run(topology))
'''


@click.command("new")
@click.argument("file", type=click.Path())
def command(file: str) -> None:
    """Write a small topology to FILE: it counts its own words, and then yours."""
    path = Path(file)
    if path.suffix != ".py":
        raise UsageError(f"{file}: a topology's file ends in .py, such as {path.stem or 'words'}.py")
    if not path.stem.isidentifier():
        name = re.sub(r"\W|^(?=\d)", "_", path.stem)
        raise UsageError(
            f"{file}: a topology's file is imported, so its name must be one that Python can import, such as {name}.py"
        )
    made = False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            made = True
            out.write(_TEXT.format(name=path.name, topology=_topology_name(path.stem)))
    except FileExistsError:
        raise UsageError(f"{file} exists already; name another file, or remove it") from None
    except OSError as error:
        if made:  # half of it is of no use
            with contextlib.suppress(OSError):
                path.unlink()
        raise UsageError(f"{file} cannot be written: {error.strerror or error}") from None
    print(f"{file} is there. Next: esault run {file}")


def _topology_name(stem: str) -> str:
    """Return a name that a topology may have, near that of its file."""
    return re.sub("[^A-Za-z0-9.]+", "-", stem).strip("-.")[:100] or "words"
