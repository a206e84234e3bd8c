"""The graph of a pipeline's tables: their order, and their picture."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from esault.errors import UsageError
from esault.spark.tables.declared import Declared, Tables

__all__ = ["Node", "drawn", "mermaid", "nodes", "ordered"]

#: of the picture, in pixels
_WIDE, _HIGH, _ACROSS, _DOWN = 190, 46, 250, 70
_COLOURS = {
    "landed": "#e8d3b9",
    "table": "#cfd8dc",
    "materialized_view": "#f3e3a2",
    "temporary_view": "#ffffff",
}


@dataclass(frozen=True)
class Node:
    """One table of the graph; `reads` are the names of others, `stream` those whose new rows it reads."""

    name: str
    kind: str
    reads: tuple[str, ...] = ()
    stream: tuple[str, ...] = ()


def ordered(tables: Tables) -> list[Declared]:
    """The declared ones, each behind those that it reads. UsageError where they go in a circle."""
    done: list[Declared] = []
    seen: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise UsageError(f"tables read one another in a circle: {' -> '.join([*path[path.index(name) :], name])}")
        if name in seen or name not in tables.declared:
            return
        for read in tables.declared[name].reads.values():
            visit(read, (*path, name))
        seen.add(name)
        done.append(tables.declared[name])

    tables.check()
    for name in tables.declared:
        visit(name, ())
    return done


def nodes(tables: Tables) -> list[Node]:
    """All tables, landed ones first, then in order."""
    made = [Node(name, "landed") for name in tables.sources]
    for one in ordered(tables):
        reads = tuple(dict.fromkeys(one.reads.values()))
        # a view passes on what it is asked for
        made.append(Node(one.name, one.kind, reads, one.stream if one.stored else reads))
    return made


def mermaid(graph: Sequence[Node]) -> str:
    """The graph as Mermaid; a dashed line stands for rows that are read whole."""
    ids = {node.name: f"n{i}" for i, node in enumerate(graph)}
    lines = ["flowchart LR"]
    lines += [f'  {ids[node.name]}["{node.name}<br><small>{_kind(node)}</small>"]' for node in graph]
    lines += [
        f"  {ids[read]} {'-->' if read in node.stream else '-.->'} {ids[node.name]}"
        for node in graph
        for read in node.reads
    ]
    return "\n".join(lines)


def _kind(node: Node) -> str:
    return node.kind.replace("_", " ")


def drawn(graph: Sequence[Node]) -> str:
    """The graph as SVG, from left to right; a dashed line stands for rows that are read whole."""
    places = _places(graph)
    width = (max((x for x, _ in places.values()), default=0) + 1) * _ACROSS
    height = (max((y for _, y in places.values()), default=0) + 1) * _DOWN + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="13">'
    ]
    for node in graph:
        x, y = places[node.name]
        for read in node.reads:
            from_x, from_y = places[read]
            x1, y1 = from_x * _ACROSS + 10 + _WIDE, from_y * _DOWN + 10 + _HIGH // 2
            x2, y2 = x * _ACROSS + 10, y * _DOWN + 10 + _HIGH // 2
            middle = (x1 + x2) // 2
            dash = "" if read in node.stream else ' stroke-dasharray="5 4"'
            parts.append(
                f'<path d="M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}" fill="none" stroke="#607d8b"{dash}/>'
            )
    for node in graph:
        x, y = places[node.name][0] * _ACROSS + 10, places[node.name][1] * _DOWN + 10
        colour = _COLOURS[node.kind]
        parts.append(
            f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="6" fill="{colour}" stroke="#455a64"/>'
            f'<text x="{x + 10}" y="{y + 20}" font-weight="bold">{html.escape(node.name)}</text>'
            f'<text x="{x + 10}" y="{y + 37}" fill="#455a64">{html.escape(_kind(node))}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _places(graph: Sequence[Node]) -> Mapping[str, tuple[int, int]]:
    """Column and row of each: columns by the longest way from a landed table."""
    depth: dict[str, int] = {}
    rows: dict[int, int] = {}
    places = {}
    for node in graph:
        column = max((depth[read] + 1 for read in node.reads), default=0)
        depth[node.name] = column
        places[node.name] = (column, rows.get(column, 0))
        rows[column] = rows.get(column, 0) + 1
    return places
