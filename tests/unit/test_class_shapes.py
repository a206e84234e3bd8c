"""How deep classes derive from each other, and how many arguments go by position."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "esault"
#: folder -> classes of the deepest line in it, from its base to its end, errors aside; the longest folder that fits counts
DEEPEST = {"flow": 2, "flow/operators": 3, "flow/send": 3, "control": 2, "runtime": 3, "spark": 2}
#: parameters from which on all go by name
BY_NAME = 10
#: a method of Thespian's, and what it starts: both say what the arguments are
GIVEN = {"runtime/actors/processes.py"}


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def classes() -> dict[tuple[str, str], tuple[Path, list[tuple[str, str]]]]:
    """(module, name) of each class -> its file and its bases."""
    found = {}
    for path in ROOT.rglob("*.py"):
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        origin = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(tree(path))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                names = [ast.unparse(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases]
                found[module, node.name] = path, [origin.get(name, (module, name)) for name in names]
    return found


def depth(name: tuple[str, str]) -> int:
    """Classes of our own in the longest line that ends here."""
    return 1 + max(map(depth, classes()[name][1]), default=0) if name in classes() else 0


def is_error(name: tuple[str, str]) -> bool:
    return name[1].endswith("Error") or any(map(is_error, classes().get(name, (ROOT, []))[1]))


def test_no_line_of_classes_is_deeper_than_said():
    found = dict.fromkeys(DEEPEST, 0)
    for name, (path, _) in classes().items():
        here = path.relative_to(ROOT).as_posix()
        fits = [folder for folder in DEEPEST if here.startswith(f"{folder}/")]
        if fits and not is_error(name):
            folder = max(fits, key=len)
            found[folder] = max(found[folder], depth(name))
    assert found == DEEPEST


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions but commands, whose decorator fills in their arguments by name."""
    for node in ast.walk(tree(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.decorator_list:
            yield node


def test_what_takes_many_arguments_takes_them_by_name():
    """The public methods of `topology` are for editors, which show names."""
    many = []
    for path in ROOT.rglob("*.py"):
        here = path.relative_to(ROOT).as_posix()
        if here in GIVEN or here.startswith("topology/"):
            continue
        for function in functions(path):
            names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
            if len(set(names) - {"self", "cls"}) >= BY_NAME:
                many.append(f"{here}: {function.name} has {len(names)} parameters")
        for call in ast.walk(tree(path)):
            # Methods are those of libraries, such as `select` of a data frame.
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and len(call.args) >= BY_NAME:
                many.append(f"{here}: {call.func.id} is given {len(call.args)} arguments")
    assert not many
