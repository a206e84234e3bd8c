"""Count the words of the Python standard library that runs this file: real text, the same on every run of one Python.

Shows a topology that reuses the bolts of a sibling file, a source with a fixed list of files, and how to check what
landed. Out comes the table `out/standard_library`, as in word_count.py. Started as a script, this file compares the
landed counts with a plain count of the same files.

    esault run topologies/standard_library.py
    python topologies/standard_library.py
    esault analyze topologies/standard_library.py
"""

import sys
import sysconfig
from collections import Counter
from pathlib import Path

from word_count import Count, Split, reports

import esault
from esault import Topology, by_key, shuffle
from esault.sinks import SparkTable
from esault.sources import TextFiles

__all__ = ["reports", "topology"]


def files() -> list[str]:
    """The library's own files, without what was installed beside them."""
    root = Path(sysconfig.get_path("stdlib"))
    return sorted(str(p) for p in root.rglob("*.py") if "-packages" not in str(p.relative_to(root)))


def topology(out: str = "out/standard_library") -> Topology:
    t = Topology("standard-library")
    lines = t.spout("lines", TextFiles(files(), errors="replace"))
    words = lines.bolt("split", Split, grouping=shuffle())
    counts = words.bolt("count", Count, grouping=by_key(), max_parallelism=8)
    table = SparkTable(out, columns={"word": str, "total": int}, mode="replace", primary_key="word")
    counts.sink("table", table)
    return t


def check(out: str = "out/standard_library") -> bool:
    """Print what landed beside a plain count of the same files; whether they are equal."""
    rows = esault.read(out).to_pydict()
    landed = Counter(dict(zip(rows["word"], rows["total"])))
    plain: Counter[str] = Counter()
    for file in files():
        with open(file, encoding="utf-8", errors="replace", newline="\n") as text:
            for line in text:
                plain.update(line.lower().split())
    print(f"{len(files()):,} files, {plain.total():,} words, {len(plain):,} different ones")
    print("most frequent:", ", ".join(f"{word} {total:,}" for word, total in landed.most_common(5)))
    print("equal to a plain count:", "yes" if landed == plain else "no")
    return landed == plain


if __name__ == "__main__":
    sys.exit(0 if check() else 1)
