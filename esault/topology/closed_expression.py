"""Expressions that run no code but what they show, with the functions that they call written out: of text and numbers only text and numbers follow.

Where a value is text or a number, an operator runs the interpreter's own code and nothing of the user's. So nothing can change in the
midst of it what a name stands for, and a function of one such expression can be written out where it is called, as long as its name
stands for it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any, NamedTuple

from esault.payload.scalars import SCALARS
from esault.topology.process_source import RefusedError, Source, source_of_function

__all__ = ["LINES", "Closed", "Place", "callers"]

#: lines of a file: what stands in line `n` of place `p` is compiled as line `p * LINES + n`
LINES = 1 << 20
#: functions that are written out within one another
_DEEP = 8
#: functions that are written out in all: one that calls two, each of which calls two, and so on
_MOST = 200
#: functions of the interpreter whose result is one of `SCALARS` where their arguments are
_FUNCTIONS: tuple[Any, ...] = (abs, bool, chr, float, int, len, ord, str)
#: methods likewise, and those whose result is a new list or tuple of such
_NAMES = (
    "bit_length capitalize casefold count endswith find index is_integer isalnum isalpha isascii "
    "isdecimal isdigit isidentifier islower isnumeric isspace istitle isupper ljust lower lstrip "
    "removeprefix removesuffix replace rfind rindex rjust rstrip startswith strip swapcase title upper "
    "zfill"
)
_METHODS = frozenset(_NAMES.split())
_SEVERAL = frozenset(("partition", "rpartition", "rsplit", "split", "splitlines"))


#: expressions that are scalars where their parts are
_OF_PARTS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.JoinedStr, ast.FormattedValue)


class Place(NamedTuple):
    """A function that is written out, and where it is called."""

    source: Source
    #: the number of the stage that it belongs to
    stage: int
    #: the place that calls it, and the call there; None: the engine calls it
    caller: int | None = None
    call: ast.expr | None = None


class _Path(NamedTuple):
    """A name with what follows it, such as `functions.CHAIN[0]`, and what it stands for."""

    #: the function that it stands in
    function: Any
    name: str
    #: (whether it is an attribute, its name or the index)
    steps: tuple[tuple[bool, Any], ...]

    def find(self) -> Any:
        """Return what it stands for now. Raises LookupError, RefusedError where to look it up may run other code."""
        names = self.function.__globals__
        found = names[self.name] if self.name in names else self.function.__builtins__[self.name]
        for attribute, key in self.steps:
            if type(found) not in ((ModuleType,) if attribute else (tuple, list, dict)):
                raise RefusedError
            found = vars(found)[key] if attribute else found[key]
        return found


class Closed:
    """Writes the expressions of stages as one sequence of bindings."""

    def __init__(self) -> None:
        #: functions that are written out, the first of which stands for the engine
        self.places: list[Place | None] = [None]
        #: in their order: a variable, and the expression whose value it is
        self.bindings: list[tuple[str, ast.expr]] = []
        self._guards: list[tuple[_Path, Any, CodeType | None]] = []
        #: of each stage what is written out
        self._codes: list[tuple[Any, CodeType]] = []

    def holds(self) -> bool:
        """Return whether all names still stand for what is written out in their place."""
        try:
            return all(function.__code__ is code for function, code in self._codes) and all(
                path.find() is found and (code is None or found.__code__ is code) for path, found, code in self._guards
            )
        except (LookupError, RefusedError):
            return False

    def add(self, source: Source, parameter: str, value: ast.expr, variable: str, stage: int) -> str:
        """Add a stage whose value follows from that of a variable; return the variable with its result. Raises RefusedError."""
        self.places.append(Place(source, stage))
        self._codes.append((source.function, source.code))
        return self._bound(_Writer(self, len(self.places) - 1, {parameter: variable}), value)

    def add_plain(self, function: Any, variable: str) -> str:
        """Add a stage that is a function or a method of the interpreter's; return the variable with its result. Raises RefusedError."""
        if any(function is each for each in _FUNCTIONS):
            called: ast.expr = ast.Name(function.__name__, ast.Load())
        elif type(function) is MethodDescriptorType and function.__objclass__ is str and function.__name__ in _METHODS:
            called = ast.Attribute(ast.Name("str", ast.Load()), function.__name__, ast.Load())
        else:
            raise RefusedError
        return self._named(ast.Call(called, [ast.Name(variable, ast.Load())], []))

    def _named(self, value: ast.expr) -> str:
        variable = f"_esault_{len(self.bindings)}"
        self.bindings.append((variable, value))
        return variable

    def _bound(self, writer: _Writer, node: ast.expr) -> str:
        """Return the variable of an expression's value; a function of a function's value becomes two bindings."""
        if (
            isinstance(node, ast.Call)
            and len(node.args) == 1
            and not isinstance(node.args[0], (ast.Name, ast.Constant))
        ):
            path = writer.path(node.func)
            if path is not None and not node.keywords:
                variable = self._bound(writer, node.args[0])
                node = copy.copy(node)
                node.args = [ast.copy_location(ast.Name(variable, ast.Load()), node.args[0])]
                writer.names[variable] = variable
        if isinstance(node, ast.Call) and (within := writer.called(node)) is not None:
            return self._bound(*within)
        written, several = writer.written(node)
        if several:
            raise RefusedError
        return self._named(written)

    def guard(self, path: _Path) -> Any:
        """Return what a path stands for, which is looked at again before each batch. Raises RefusedError."""
        try:
            found = path.find()
        except LookupError:
            raise RefusedError from None
        self._guards.append((path, found, found.__code__ if type(found) is FunctionType else None))
        return found


class _Writer:
    """Writes the expressions of one function."""

    def __init__(self, closed: Closed, place: int, names: dict[str, str]) -> None:
        """`names`: by the variables of the function those that have their values."""
        self._closed, self._place, self.names = closed, place, names
        known = closed.places[place]
        assert known is not None
        self._source, self._stage = known.source, known.stage

    def called(self, node: ast.Call) -> tuple[_Writer, ast.expr] | None:
        """Return what writes the function that is called, and its result; None where it is not one of the user's."""
        path = self.path(node.func)
        if path is None:
            return None
        found = self._closed.guard(path)
        if type(found) is not FunctionType:
            return None
        if len(node.args) != 1 or node.keywords or self._depth() > _DEEP or len(self._closed.places) > _MOST:
            raise RefusedError
        source, parameter, value = source_of_function(found)
        argument, several = self.written(node.args[0])
        if several or not isinstance(argument, ast.Name):
            raise RefusedError
        self._closed.places.append(Place(source, self._stage, self._place, node))
        return _Writer(self._closed, len(self._closed.places) - 1, {parameter: argument.id}), value

    def _depth(self) -> int:
        depth, place = 0, self._closed.places[self._place]
        while place is not None and place.caller is not None:
            depth, place = depth + 1, self._closed.places[place.caller]
        return depth

    def path(self, node: ast.expr) -> _Path | None:
        """Return the path that an expression is, which begins with a name that is no variable."""
        steps: list[tuple[bool, Any]] = []
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Attribute):
                steps.append((True, node.attr))
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                steps.append((False, node.slice.value))
            else:
                return None
            node = node.value
        if node.id in self.names or node.id in self._source.code.co_varnames:
            return None
        return _Path(self._source.function, node.id, tuple(reversed(steps)))

    def written(self, node: ast.expr) -> tuple[ast.expr, bool]:
        """Return the expression in variables of the loop, and whether it is a list or tuple of scalars. Raises RefusedError."""
        made = copy.copy(node)
        several = False
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                raise RefusedError
            made = ast.Name(self.names[node.id], ast.Load())
        elif isinstance(node, ast.Constant):
            if type(node.value) not in SCALARS:
                raise RefusedError
        elif isinstance(node, ast.Call):
            return self._call(node)
        elif isinstance(node, ast.Subscript):
            made, several = self._subscript(node)
        elif isinstance(node, _OF_PARTS) and not _warns(node):
            self._parts(made)
        else:
            raise RefusedError
        return self._placed(made, node), several

    def _parts(self, made: ast.AST) -> None:
        """Write the expressions that one has, in place of them; each is a scalar."""
        for name, value in list(ast.iter_fields(made)):
            if isinstance(value, ast.expr):
                setattr(made, name, self._scalar(value))
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                setattr(made, name, [self._scalar(each) for each in value])

    def _scalar(self, node: ast.expr) -> ast.expr:
        written, several = self.written(node)
        if several:
            raise RefusedError
        return written

    def _subscript(self, node: ast.Subscript) -> tuple[ast.expr, bool]:
        value, several = self.written(node.value)
        if isinstance(node.slice, ast.Slice):
            index: ast.expr = copy.copy(node.slice)
            self._parts(index)
            index = self._placed(index, node.slice)
        else:
            index, several = self._scalar(node.slice), False
        return ast.Subscript(value, index, ast.Load()), several

    def _call(self, node: ast.Call) -> tuple[ast.expr, bool]:
        if node.keywords:
            raise RefusedError
        within = self.called(node)
        if within is not None:
            writer, value = within
            return writer.written(value)
        path = self.path(node.func)
        if path is not None:
            found = self._closed.guard(path)
            if not any(found is each for each in _FUNCTIONS):
                raise RefusedError
            arguments = [self.written(each) for each in node.args]
            if found is not len and any(several for _, several in arguments):
                raise RefusedError
            # Each has one name in the loop, whatever it is called here; the loop sees the interpreter's own names only.
            function: ast.expr = self._placed(ast.Name(found.__name__, ast.Load()), node.func)
            return self._placed(ast.Call(function, [each for each, _ in arguments], []), node), False
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in _METHODS | _SEVERAL:
            raise RefusedError
        method = ast.Attribute(self._scalar(node.func.value), node.func.attr, ast.Load())
        call = ast.Call(self._placed(method, node.func), [self._scalar(each) for each in node.args], [])
        return self._placed(call, node), node.func.attr in _SEVERAL

    def _placed(self, made: ast.expr, at: ast.expr) -> ast.expr:
        """Give what was made the place of what it stands for, and say in its line which function that is of."""
        ast.copy_location(made, at)
        made.lineno += self._place * LINES
        if made.end_lineno is not None:
            made.end_lineno += self._place * LINES
        return made


def _warns(node: ast.expr) -> bool:
    """Return whether the interpreter may warn of it while it runs, and would say that it stands here: `~True`."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)


def callers(places: list[Place | None], number: int) -> Iterator[tuple[Place, ast.expr | None]]:
    """Yield a place and those that call it, innermost first, each with the call that was under way in it; None for the innermost."""
    call: ast.expr | None = None
    at: int | None = number
    while at is not None:
        place = places[at]
        assert place is not None
        yield place, call
        at, call = place.caller, place.call
