"""Tables and lists of the docs say each thing once: a line that stands twice is left of two edits put together."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def blocks(text: str) -> Iterator[list[tuple[int, str]]]:
    """Lines with their numbers, in stretches that a heading or a fence of code divides; lines of code are left out."""
    fence, block = False, []
    for number, line in enumerate(text.splitlines(), 1):
        divides = line.lstrip().startswith("```")
        fence ^= divides
        if divides or line.startswith("#"):
            yield block
            block = []
        elif not fence:
            block.append((number, line))
    yield block


def first_cells(block: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """First cells of each table, of "`module`: names" the module; empty ones and "..." go on with the row above."""
    table: list[tuple[int, str]] = []
    for number, line in [*block, (0, "")]:
        if line.startswith("|"):
            cell = re.split(r"(?<!\\)\|", line)[1].strip()
            room = re.match(r"`[^`]+`(?=: )", cell)
            if cell.strip(":- ") and not cell.startswith("..."):
                table.append((number, room[0] if room else cell))
        elif table:
            yield table
            table = []


def bullets(block: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """What the bullets of a list begin with: the name in code, else the first line."""
    found = []
    for number, line in block:
        bullet = re.match(r"[-*] (.*)", line)
        if bullet:
            name = re.match(r"\[?`[^`]+`", bullet[1])
            found.append((number, name[0] if name else bullet[1]))
    yield found


def lists_of_names(block: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """The names in code of each line that lists four or more, with those of the line before it."""
    for (_, before), (number, line) in itertools.pairwise(block):
        names = [re.findall(r"`(\w+)`[,.]", each) for each in (before, line)]
        if not line.startswith("|") and len(names[0]) > 3 and len(names[1]) > 3:
            yield [(number, name) for name in names[0] + names[1]]


def twice(text: str, of: object = first_cells) -> list[tuple[int, str]]:
    """Beginnings that stood in the same table or list before, with the number of their lines."""
    found = []
    for block in blocks(text):
        for group in of(block):
            seen: set[str] = set()
            for number, beginning in group:
                if beginning in seen:
                    found.append((number, beginning))
                seen.add(beginning)
    return found


@pytest.mark.parametrize("of", [first_cells, bullets, lists_of_names])
def test_no_table_and_no_list_says_a_thing_twice(of):
    found = {str(page.relative_to(ROOT)): twice(page.read_text(), of) for page in PAGES}
    assert not {page: lines for page, lines in found.items() if lines}


def test_what_stands_twice_is_found():
    assert twice("| a | b |\n|---|---|\n| `x` | 1 |\n| `y` | 2 |\n| `x` | 3 |\n") == [(5, "`x`")]
    assert twice("- `tests/x/` holds\n  more\n- other\n- `tests/x/` draws\n", bullets) == [(4, "`tests/x/`")]
    assert twice("`A`, `B`, `C`, `D`,\n`E`, `B`, `F`, `G`.\n", lists_of_names) == [(2, "B")]
    assert not twice("| a | b |\n|---|---|\n| x | 1 |\n\n| a | b |\n|---|---|\n| x | 1 |\n")
