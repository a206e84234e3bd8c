"""The programs in `topologies/`: what each must give, compared value by value and type by type."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from esault.sinks.json_row import encode_row, with_objects
from esault.topology.locate import locate
from esault.topology.plan import Plan

FOLDER = Path(__file__).parent / "topologies"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
#: those that together use all of the engine that any of them does, as `test_chosen_programs` shows: where a run takes seconds, these
FEW = (
    "attribution",
    "best_sellers",
    "columns_of_sales",
    "enriched",
    "flushed",
    "heartbeat",
    "helpdesk",
    "limits",
    "offers",
    "silences",
    "solar",
    "stock",
    "tournaments",
    "visitors",
    "visits",
)


class Program:
    """One file: its topology, and what it says that must come of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = FOLDER / f"{name}.py"
        self._located = locate(str(self.path))
        self.module = self._located.load_module()

    def plan(self, **params: Any) -> Plan:
        return self._located.build(params).plan()

    def expected(self, size: int) -> dict[str, list[tuple[Any, Any]]]:
        return self.module.expected(size)

    def settled(self, sink: str, rows: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """The rows as they are; where time decides into how many parts a result falls, what they come to together."""
        together = getattr(self.module, "together", None)
        return list(rows) if together is None else list(together(sink, list(rows)))

    def check(self, found: Mapping[str, Iterable[tuple[Any, Any]]], size: int) -> None:
        """What sinks were given, as objects: types and values are those of the plain loop."""
        want = self.expected(size)
        assert set(found) == set(want)
        for sink, rows in want.items():
            assert rows, f"{sink}: nothing is expected"
            _same(sink, map(exact, self.settled(sink, found[sink])), map(exact, self.settled(sink, rows)))

    def check_files(self, folder: Path, size: int) -> None:
        """The same of the lines of JSON that sinks wrote."""
        for sink, rows in self.expected(size).items():
            reader = getattr(self.module, "written", None)
            if reader is not None:
                lines = reader(folder, sink)
            else:
                text = (folder / f"{sink}.jsonl").read_text()
                lines = [(row["key"], row["value"]) for row in map(json.loads, text.splitlines())]
            _same(sink, map(as_json, self.settled(sink, lines)), map(as_json, self.settled(sink, rows)))


def _same(sink: str, found: Iterable[str], want: Iterable[str]) -> None:
    have, should = Counter(found), Counter(want)
    wrong, missing = have - should, should - have
    assert not wrong and not missing, (
        f"{sink}: {wrong.total()} rows of {have.total()} should not be there, such as {list(wrong)[:2]}; "
        f"{missing.total()} are missing, such as {list(missing)[:2]}"
    )


def as_json(row: tuple[Any, Any]) -> str:
    """As the sink writes it."""
    key, value = row
    text = encode_row({"key": key, "value": with_objects([value])[0]})
    return json.dumps(json.loads(text), sort_keys=True)


def _fields(value: Any) -> list[str] | None:
    """Of a dataclass, an attrs class, a Struct or a model; their own texts say sets in the order of the day."""
    kind = type(value)
    if is_dataclass(kind):
        return [each.name for each in fields(kind)]
    if hasattr(kind, "__attrs_attrs__"):
        return [each.name for each in kind.__attrs_attrs__]
    if hasattr(kind, "__struct_fields__"):
        return list(kind.__struct_fields__)
    return list(kind.model_fields) if hasattr(kind, "model_fields") else None


def exact(value: Any) -> str:
    """All that a value is, its types included; two that are alike give the same text."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, dict):
        items = [f"{exact(k)}: {exact(v)}" for k, v in value.items()]
        made_by = getattr(value, "default_factory", "")  # of a defaultdict: what a key that is not there gets
        return f"{name} {made_by}{{{', '.join(items)}}}"
    if isinstance(value, (set, frozenset)):
        return f"{name}{{{', '.join(sorted(map(exact, value)))}}}"
    if isinstance(value, (list, tuple, deque)):
        return f"{name} {getattr(value, 'maxlen', '')}[{', '.join(map(exact, value))}]"
    names = _fields(value)
    if names is not None:
        return f"{name}({', '.join(f'{each}={exact(getattr(value, each))}' for each in names)})"
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return f"{name}:{value.dtype}:{getattr(value, 'shape', ())}:{exact(value.tolist())}"
    return f"{name} {value!r}"
