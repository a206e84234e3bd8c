"""The folders of `bench/`: who may import whom, and commands named in strings."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = sorted(p for p in (ROOT / "bench").rglob("*.py") if p.parent.name != "bench")
#: folders that serve all questions -> which others of them they may import
SHARED: dict[str, set[str]] = {"workloads": set(), "kit": {"workloads"}, "peers": {"kit", "workloads"}}
#: question -> questions whose model, topology or figures it takes up
TAKES_UP = {"policies": {"elastic"}, "soak": {"faults"}, "spark_faults": {"faults"}}
#: parts of bench policies that import no other part
PARTS = {"autoscale", "craa", "migration", "orientstream"}


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def imported(path: Path) -> set[str]:
    """Modules of bench that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if name.startswith("bench.")}


def test_benches_import_what_is_shared_and_few_others():
    for path in MODULES:
        own = path.relative_to(ROOT / "bench").parts[0]
        allowed = {own, *SHARED[own]} if own in SHARED else {own, *SHARED, *TAKES_UP.get(own, ())}
        assert {name.split(".")[1] for name in imported(path)} <= allowed, path


def test_one_papers_experiment_imports_no_other_papers():
    for path in (ROOT / "bench" / "policies").rglob("*.py"):
        own = path.relative_to(ROOT / "bench" / "policies").parts[0]
        if own in PARTS:
            others = {n.split(".")[2] for n in imported(path) if n.startswith("bench.policies.")}
            assert others <= {own, "claims"}, path


def test_a_module_named_in_a_command_exists():
    for path in [*MODULES, *(ROOT / "tests" / "bench").rglob("*.py")]:
        for name in re.findall(r"\"(bench(?:\.\w+)+)[\":]|python -m (bench(?:\.\w+)+)", path.read_text()):
            place = ROOT.joinpath(*"".join(name).split("."))
            assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), f"{path}: {name}"


def test_no_module_of_bench_is_a_drawer_or_too_long_and_each_says_what_it_is():
    for path in MODULES:
        assert path.stem not in {"utils", "util", "helpers", "common", "misc", "base"}, path
        text = path.read_text()
        said = ast.get_docstring(ast.parse(text)) or ""
        assert len(text.splitlines()) <= (500 if "over 300 lines" in said else 300), path
        first = said.split(" ")[0]
        assert first not in {"", "What", "Who", "Whether", "How", "Which", "Where", "When", "Does"}, path
