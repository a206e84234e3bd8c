"""Pictures of a plan: a tree for terminals, a flowchart for Mermaid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from esault.topology.declared import edge_types, written_pair
from esault.topology.error_policy import Backoff, ErrorPolicy, fail
from esault.topology.function import name_of
from esault.topology.plan import Edge, Outlet, Plan, UnitPlan
from esault.topology.timed_bolt import Unwindowed

__all__ = ["draw", "mermaid"]

_OBJECTS = {
    "key": "one object per key",
    "partial_key": "two objects per key",
    "sub-unit": "one object per sub-unit",
    "unit": "one object",
}


def draw(plan: Plan) -> str:
    """A tree from the spouts down: groupings and declared types on the arrows, function steps and sinks below the unit they
    run with.

    A unit with several inputs is drawn where it is first met, and named "(above)" afterwards.
    """
    drawn: set[str] = set()
    labels = _Labels(plan)
    lines = [f"topology {plan.name}"]
    for unit in plan.units.values():
        if unit.kind == "spout":
            lines += ["", *_unit_lines(plan, unit.name, drawn, labels)]
    return "\n".join(lines) + "\n"


class _Labels:
    """The labels of arrows: the grouping, and the types of key and value where they are declared."""

    def __init__(self, plan: Plan) -> None:
        self._types = edge_types(plan)

    def of(self, edge: Edge) -> str:
        types = self._types.get((edge.target, edge.input), (Any, Any))
        grouping = repr(edge.grouping)
        return grouping if types == (Any, Any) else f"{grouping} {written_pair(types)}"


def _unit_lines(plan: Plan, name: str, drawn: set[str], labels: _Labels) -> list[str]:
    if name in drawn:
        return [f"{name} (above)"]
    drawn.add(name)
    unit = plan.units[name]
    children: list[list[str]] = []
    for stream, outlet in unit.streams.items():
        below = _outlet_lines(plan, outlet, drawn, labels)
        if stream:
            # A stream without a receiver is shown too: what is emitted there is lost.
            children.append(_tree(f"stream {stream}" + ("" if below else " (nothing takes it)"), below))
        else:
            children += below
    return _tree(f"{name}  {_about(unit)}", children)


def _outlet_lines(plan: Plan, outlet: Outlet, drawn: set[str], labels: _Labels) -> list[list[str]]:
    below = [[f"sink {sink.name}  {name_of(type(sink.sink))}"] for sink in outlet.sinks]
    for edge in outlet.edges:
        first, *rest = _unit_lines(plan, edge.target, drawn, labels)
        below.append([f"{labels.of(edge)} → {first}", *rest])
    for branch in outlet.branches:
        below += _outlet_lines(plan, branch, drawn, labels)
    if not outlet.steps:
        return below
    return [_tree(" → ".join(step.name for step in outlet.steps), below)]


def _tree(head: str, children: list[list[str]]) -> list[str]:
    lines = [head]
    for i, child in enumerate(children):
        last = i == len(children) - 1
        first, *rest = child
        lines.append(("└─ " if last else "├─ ") + first)
        lines += [("   " if last else "│  ") + line for line in rest]
    return lines


def _about(unit: UnitPlan) -> str:
    """Return a few words about a unit."""
    if unit.merger:
        return "merger, passes the first result for each row on"
    least, most = unit.min_parallelism, unit.max_parallelism
    bounds = "" if most == 1 else f" ({least} or more)" if most is None else f" ({least} to {most})"
    words = [f"{unit.kind} {_class_name(unit)}", f"parallelism {unit.parallelism}{bounds}"]
    if unit.after:
        words.append(f"after {', '.join(unit.after)}")
    if unit.kind == "bolt":
        words.append("one object per sub-unit, state by key" if _keyed_batch(unit) else _OBJECTS[unit.objects])
    if unit.window is not None and not isinstance(unit.window.kind, Unwindowed):
        words[-1] = f"one object per key and {unit.window.kind!r}"
    if unit.concurrency is not None:
        words.append(f"concurrency {unit.concurrency}")
    if unit.replicas > 1:
        words.append(f"replica {unit.replica_index + 1} of {unit.replicas}")
    for argument in ("idle_after", "expire_after", "tick_every"):
        seconds = getattr(unit, argument)
        if seconds is not None:
            words.append(f"{argument} {seconds:g} s")
    if unit.keys_in_memory is not None:
        words.append(f"{unit.keys_in_memory:,} keys in memory")
    if unit.buffer is not None:
        words.append(f"buffer {unit.buffer}, overflow drop")
    if unit.on_error != fail():
        words.append(f"on_error {_policy(unit.on_error)}")
    return ", ".join(words)


def _keyed_batch(unit: UnitPlan) -> bool:
    return unit.batch and unit.objects in ("key", "partial_key")


def _class_name(unit: UnitPlan) -> str:
    return "merger" if unit.merger else name_of(type(unit.spout) if unit.kind == "spout" else unit.factory)


def _policy(policy: ErrorPolicy) -> str:
    arguments = [repr(policy.path)] if policy.path is not None else []
    if policy.retries:
        tries = policy.retries
        arguments.append(f"retries={f'backoff({tries.attempts})' if isinstance(tries, Backoff) else tries}")
    return f"{policy.kind}({', '.join(arguments)})"


def mermaid(plan: Plan) -> str:
    """A Mermaid flowchart: a box per unit, with the function steps and sinks of its process around it."""
    ids = {name: f"u{i}" for i, name in enumerate(plan.units)}
    labels = _Labels(plan)
    inside: list[str] = []
    arrows: list[str] = []
    for name, unit in plan.units.items():
        box = _box(name, _class_name(unit), "([", "])") if unit.kind == "spout" else _box(name, _class_name(unit))
        nodes = [f"{ids[name]}{box}"]
        for i, (stream, outlet) in enumerate(unit.streams.items()):
            for node, arrow in _parts(ids, outlet, ids[name], f"{ids[name]}_{i}", stream, labels):
                nodes += [node] if node else []
                arrows.append(arrow)
        if len(nodes) == 1:
            inside += nodes
        else:
            process = _escape(f"process of {name}")
            inside += [f'subgraph p_{ids[name]}["{process}"]', *(f"  {node}" for node in nodes), "end"]
    return "\n".join(["flowchart LR", *(f"  {line}" for line in inside + arrows)]) + "\n"


def _parts(
    ids: dict[str, str], outlet: Outlet, start: str, prefix: str, stream: str, labels: _Labels
) -> Iterator[tuple[str, str]]:
    """Nodes and arrows of an outlet, (node or "", arrow), from the node `start` on; `stream` labels the first arrow."""
    for i, step in enumerate(outlet.steps):
        node = f"{prefix}s{i}"
        yield f"{node}{_box(step.name, shape='(', end=')')}", _arrow(start, node, stream)
        start, stream = node, ""
    for i, sink in enumerate(outlet.sinks):
        node = f"{prefix}k{i}"
        yield f"{node}{_box(sink.name, name_of(type(sink.sink)), '[(', ')]')}", _arrow(start, node, stream)
    for edge in outlet.edges:
        label = labels.of(edge)
        yield "", _arrow(start, ids[edge.target], f"{stream}: {label}" if stream else label)
    for i, branch in enumerate(outlet.branches):
        yield from _parts(ids, branch, start, f"{prefix}b{i}", stream, labels)


def _arrow(start: str, end: str, label: str) -> str:
    return f'{start} -->|"{_escape(label)}"| {end}' if label else f"{start} --> {end}"


def _box(name: str, about: str = "", shape: str = "[", end: str = "]") -> str:
    text = _escape(name) + (f"<br/>{_escape(about)}" if about else "")
    return f'{shape}"{text}"{end}'


def _escape(text: str) -> str:
    # Mermaid's own entities; names of units need none, but a grouping's repr or a factory's name may.
    for character, entity in (("#", "#35;"), ("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(character, entity)
    return text
