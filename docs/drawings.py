"""Draws the rooms of the code, from its imports, into docs/explanation/architecture.md.

`python docs/drawings.py` writes the page anew; a test compares it with the code. An arrow means "imports". One that
follows from others is left out, so that a picture can be read.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ROOT / "esault"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
#: rooms with a picture of their own
ROOMS = ("flow", "control", "runtime", "elasticity")
#: imported by nearly all, and importing nothing: an arrow to these says nothing
EVERYWHERE = {"errors", "version", "__init__", "__main__"}

#: what the picture of all rooms puts together, each room in one of them
GROUPS = {
    "commands and pages": ("api", "cli", "ui", "shadow"),
    "what a topology is written with": (
        "topology",
        "bolts",
        "windows",
        "aggregates",
        "patterns",
        "lookups",
        "policies",
    ),
    "in and out": ("sources", "sinks", "connectors", "formats", "object_store"),
    "a run": ("runtime", "cluster", "control", "flow", "state", "messages", "routing", "report"),
    "elasticity": ("elasticity", "sim"),
    "other engines: Spark, and one process": ("spark", "testing"),
}
#: single modules and values that any room may import: no arrows, for they would be half of the picture
SHARED = {
    *("answer_watch", "background", "counters", "event_loop", "histogram", "late_names", "payload", "registry"),
    *("state_home", "tls_refused", "value_class"),
}

#: they load public names of connectors when they are asked for
NAMES = {CODE / "sources/__init__.py", CODE / "sinks/__init__.py"}

Arrows = dict[str, set[str]]


def imported(path: Path) -> set[str]:
    """Modules of esault that a module imports, anywhere in it; for type checkers alone in those of `NAMES`."""
    found = set()
    tree = ast.parse(path.read_text())
    for node in tree.body if path in NAMES else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if name.startswith("esault.")}


def rooms() -> Arrows:
    """Each room with the rooms that it imports."""
    arrows: Arrows = {}
    for path in sorted(CODE.rglob("*.py")):
        here = path.relative_to(CODE).parts[0].removesuffix(".py")
        if here not in EVERYWHERE:
            others = {name.split(".")[1] for name in imported(path)}
            arrows.setdefault(here, set()).update(others - EVERYWHERE - {here})
    return arrows


def grouped(arrows: Arrows) -> str:
    """The rooms as a Mermaid flowchart, by group. Raises ValueError for a room that is in none."""
    placed = {room for group in GROUPS.values() for room in group}
    if wrong := arrows.keys() ^ (placed | SHARED):
        raise ValueError(f"each room is in one of GROUPS, or in SHARED; see to: {', '.join(sorted(wrong))}")
    lines = []
    for number, (title, group) in enumerate(GROUPS.items()):
        lines += [f'  subgraph group{number}["{title}"]', *(f"    {room}" for room in group), "  end"]
    for name, others in sorted(reduced({name: others - SHARED for name, others in arrows.items()}).items()):
        lines += [f"  {name} --> {other}" for other in sorted(others) if name not in SHARED]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def folder(module: str) -> str:
    """The folder of its room that a module lies in; "" for a room's own modules."""
    parts = module.split(".")
    return ".".join(parts[2:] if CODE.parent.joinpath(*parts).is_dir() else parts[2:-1])


def folders(room: str) -> Arrows:
    """Each folder of a room with the folders of the same room that it imports."""
    arrows: Arrows = {}
    for path in sorted((CODE / room).rglob("*.py")):
        here = ".".join(path.relative_to(CODE / room).parent.parts)
        if path.name == "__init__.py":
            if here:  # an empty __init__ makes a folder, and a room's own says nothing about its folders
                arrows.setdefault(here, set())
            continue
        others = {folder(name) for name in imported(path) if name.startswith(f"esault.{room}.")}
        arrows.setdefault(here, set()).update(others - {here})
    return arrows


def reached(arrows: Arrows, start: str) -> set[str]:
    """All that can be reached from `start`."""
    found: set[str] = set()
    waiting = list(arrows.get(start, ()))
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            waiting.extend(arrows.get(here, ()))
    return found


def reduced(arrows: Arrows) -> Arrows:
    """Only arrows that do not follow from others. Raises ValueError where arrows go round in a circle."""
    for name in arrows:
        if name in reached(arrows, name):
            raise ValueError(f"{name} imports itself by way of others")
    return {
        name: {other for other in others if not any(other in reached(arrows, between) for between in others - {other})}
        for name, others in arrows.items()
    }


def drawn(arrows: Arrows, own: str = "") -> str:
    """A Mermaid flowchart. `own`: what the node without a name is called."""
    names = {name: re.sub(r"\W", "_", name) or "own_modules" for name in sorted(arrows)}
    lines = [f'  {node}["{name or own}"]' for name, node in names.items()]
    for name, others in sorted(reduced(arrows).items()):
        lines += [f"  {names[name]} --> {names[other]}" for other in sorted(others)]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def table(room: str) -> str:
    """The folders of a room and the first sentence about each."""
    rows = ["| folder | holds |", "|---|---|"]
    for name in sorted(filter(None, folders(room))):
        module = CODE.joinpath(room, *name.split("."), "__init__.py")
        text = ast.get_docstring(ast.parse(module.read_text())) if module.exists() else ""
        says = " ".join((text or "").partition("\n\n")[0].split())
        rows.append(f"| `{room}/{name.replace('.', '/')}` | {says} |")
    return "\n".join(rows)


def pictures() -> dict[str, str]:
    """What stands between the marks of the page, by mark."""
    found = {"rooms": grouped(rooms())}
    for room in ROOMS:
        found[room] = f"{drawn(folders(room), f'{room}/*.py')}\n\n{table(room)}"
    return found


def written(page: str) -> str:
    """The page with its pictures as the code is now. Raises KeyError for a mark that is not known."""
    found = pictures()
    return re.sub(
        r"(<!-- drawn: (\w+) -->\n).*?(<!-- end -->)",
        lambda match: f"{match[1]}{found[match[2]]}\n{match[3]}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
