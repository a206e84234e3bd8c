"""Functions that were defined in the cells of a notebook, as a file that other processes can import.

Code is imported, never pickled. A notebook has no file, but it has the text of its cells. So a topology function is written to
a file together with what it needs of them: functions, classes, imports, names that were assigned. What cannot be written so
is refused by name. A name that holds plain data is written as it is now; another one is assigned in the file as it was in its cell.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
import symtable
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from esault.errors import LocateError
from esault.value_class import value_class

__all__ = ["cells", "module_text", "write_module"]

#: beside the state of runs, which is there too
FOLDER = Path(".esault") / "notebook"
_HEAD = (
    "# Written by eSault from the cells of a notebook, for the processes of a run: it is written anew by the next.\n"
)
#: what ends a line of Python
_BREAK = re.compile("\r\n|\r|\n")
#: elements of plain data that are written out, at most
_MOST = 100_000


def cells() -> tuple[Sequence[str], Mapping[str, Any]] | None:
    """Return the cells that were run, in order, and the names that they have made; None where this is no notebook."""
    names = vars(sys.modules["__main__"])
    return (names["In"], names) if hasattr(builtins, "__IPYTHON__") and isinstance(names.get("In"), list) else None


def write_module(function: str, sources: Sequence[str], names: Mapping[str, Any]) -> Path:
    """Write the file for a function of this name, below the current folder, and return its absolute path. Raises LocateError."""
    path = Path.cwd() / FOLDER / f"{function}.py"
    text = module_text(function, sources, names)
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            written = path.with_suffix(f".{os.getpid()}")
            written.write_text(text, encoding="utf-8")  # as Python reads it, whatever the locale
            written.replace(path)
    except OSError as error:
        raise LocateError(f"{path}, which the processes of a run import, cannot be written: {error}") from None
    return path


def module_text(function: str, sources: Sequence[str], names: Mapping[str, Any]) -> str:
    """Return the text of a module with `function` and all that it needs of the cells. Raises LocateError.

    `names` has what the cells' names hold now.
    """
    return _Module(sources, names).text(function)


@value_class(frozen=True)
class _Definition:
    """The newest statement that gives a name its meaning."""

    statement: ast.stmt
    text: str


class _Module:
    def __init__(self, sources: Sequence[str], names: Mapping[str, Any]) -> None:
        self._names = names
        self._definitions: dict[str, _Definition] = {}
        #: for all that follows in the file
        self._always: list[str] = []
        for source in sources:
            try:
                tree = ast.parse(source)
            except SyntaxError:
                continue  # such a cell has defined nothing
            lines = _BREAK.split(source)  # as Python counts them: a text may hold other breaks
            for statement in tree.body:
                first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
                text = "\n".join(lines[first - 1 : statement.end_lineno])
                if isinstance(statement, ast.ImportFrom) and (
                    statement.module == "__future__" or statement.names[0].name == "*"
                ):
                    self._always.append(text)
                for name in _bound(statement):
                    self._definitions[name] = _Definition(statement, text)

    def text(self, function: str) -> str:
        """Return the module: what is needed stands before what needs it."""
        written: dict[str, str] = {}
        self._write(function, written, ())
        always = sorted(dict.fromkeys(self._always), key=lambda text: "__future__" not in text)
        return "\n\n".join([_HEAD, *always, *dict.fromkeys(written.values())]) + "\n"

    def _write(self, name: str, written: dict[str, str], needed_by: tuple[str, ...]) -> None:
        if name in written or name in needed_by:
            return
        definition = self._definitions.get(name)
        if definition is None:
            return  # of Python itself, or missing: the import says so
        statement = definition.statement
        if not isinstance(
            statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
        ):
            value = self._names.get(name)
            if name in self._names and _is_plain(value):
                written[name] = f"{name} = {value!r}"
                return
            if isinstance(statement, ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith | ast.AugAssign):
                raise LocateError(
                    f"{needed_by[-1] if needed_by else name} uses {name}, a {type(value).__name__} that a cell made in "
                    f"`{definition.text.splitlines()[0].strip()}`: other processes cannot make it again. Make it in the topology function, or "
                    "in a function that it calls; plain values can also come as params={...}"
                )
        for needed in _needs(definition.text):
            self._write(needed, written, (*needed_by, name))
        written[name] = definition.text


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top of a cell binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
    else:
        table = symtable.symtable(ast.unparse(statement), "cell", "exec")
        yield from (each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported())


def _needs(text: str) -> list[str]:
    """Return the names from outside that a statement uses, in any of its functions, each once."""
    found: dict[str, None] = {}
    waiting = [symtable.symtable(text, "cell", "exec")]
    while waiting:
        table = waiting.pop()
        top = table.get_type() == "module"
        found.update(
            (each.get_name(), None)
            for each in table.get_symbols()
            if each.is_referenced() and (top or each.is_global())
        )
        waiting += table.get_children()
    return list(found)


def _is_plain(value: Any) -> bool:
    """Return whether `repr` gives an equal value, and not too long a one."""
    waiting, seen = [value], 0
    while waiting:
        each = waiting.pop()
        seen += 1
        kind = type(each)
        if kind in (list, tuple, set, frozenset) and (each or kind not in (set, frozenset)):
            waiting += each
        elif kind is dict:
            waiting += [*each, *each.values()]
        elif kind is float:
            if each != each or each in (float("inf"), float("-inf")):
                return False
        elif kind not in (int, str, bytes, bool, type(None)):
            return False
        if seen + len(waiting) > _MOST:
            return False
    return True
