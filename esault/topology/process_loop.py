"""The loop over a batch with a bolt's `process` written out in it: to call it for each tuple, and `emit` for each it puts out, costs more than many do.

A `process` is written out where nothing else changes by it: its source is at hand and is what runs, it keeps no variable from one tuple
to the next, leaves nothing behind that looks at its variables later, and is an ordinary function of the class. Of what is more than that
the calls are a small part anyway. Lines, names and files in tracebacks are those of the user's.
"""

from __future__ import annotations

import ast
import copy
import dis
import sys
from collections.abc import Callable, Collection, Iterator
from types import CodeType, FunctionType
from typing import Any

from esault.topology.bolt import Bolt
from esault.topology.method_code import codes_of_methods, passes_itself
from esault.topology.process_check import Checker
from esault.topology.process_source import RefusedError, Source, compiled, source_of

__all__ = ["ProcessLoop", "process_loop"]

#: variables of the loop itself
_ROWS, _ELEMENTS, _KEYS, _VALUES, _BEGINS = (
    "_esault_rows",
    "_esault_elements",
    "_esault_keys",
    "_esault_values",
    "_esault_begins",
)
_KEY, _VALUE = "_esault_key", "_esault_value"
#: attributes that stand for other code than the class has
_STORED = {"process", "emit", "__class__"}


class ProcessLoop:
    """The loops of one class's `process`."""

    def __init__(
        self, function: FunctionType, definition: ast.FunctionDef, within: str, imported: tuple[str, ...], alone: bool
    ) -> None:
        """`alone`: nothing else can emit for the object while it processes."""
        self.function = function
        self.code = function.__code__
        self._definition, self._within, self._imported = definition, within, imported
        self._made: dict[tuple[bool, bool] | None, FunctionType] = {}
        #: each tuple brings forth one with its key, whose value follows from its own: there is `map`
        self.maps = alone and _Writer(definition, self.code.co_varnames, False, False).mapped() is not None

    def value(self) -> tuple[Source, str, ast.expr]:
        """Return the function with its source where it `maps`, the name of the value that it gets, and the value that it emits."""
        (only,) = (each for each in self._definition.body if not _is_text(each))
        assert isinstance(only, ast.Expr) and isinstance(only.value, ast.Call)
        arguments = (*self._definition.args.posonlyargs, *self._definition.args.args)
        source = Source(self.function, self.code, self._definition, self._within, self._imported)
        return source, arguments[2].arg, only.value.args[1]

    def loop(self, keyed: bool, begins: bool) -> Callable[..., None]:
        """Return the loop: called with pairs of keys and values, the object, and the lists of keys and values that were emitted.

        `keyed`: called with triples of key, value and the object, None where it is still to be looked up, and a dict of them by key.

        `begins`: and with a list to which the length of the first one is added before each tuple.
        """
        made = self._made.get((keyed, begins))
        if made is None:
            written = _Writer(self._definition, self.code.co_varnames, keyed, begins).written()
            made = self._made[keyed, begins] = self._function(written)
        return made

    def map(self) -> Callable[[Iterator[Any]], list[Any]]:
        """Return the loop over values alone: called with an iterator of them, it returns those that were emitted."""
        made = self._made.get(None)
        if made is None:
            written = _Writer(self._definition, self.code.co_varnames, False, False).mapped()
            assert written is not None
            code = self._compiled(written)
            # Until Python 3.12 a comprehension is a function within, which tracebacks would show besides.
            within = next((c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == "<listcomp>"), None)
            if within is not None:
                if sys.version_info >= (3, 11):
                    within = within.replace(co_qualname=code.co_qualname)
                code = within.replace(co_name=code.co_name)
            made = self._made[None] = FunctionType(code, self.function.__globals__)
        return made

    def _function(self, written: ast.FunctionDef) -> FunctionType:
        return FunctionType(self._compiled(written), self.function.__globals__)

    def _compiled(self, written: ast.FunctionDef) -> CodeType:
        return compiled(written, self._within, self._imported, self.code)

    def stands_for(self, function: Any) -> bool:
        """Return whether this is still what would be called."""
        return function is self.function and self.function.__code__ is self.code

    def between(self, error: BaseException) -> bool:
        """Return whether an error came from between two tuples and not from the user's lines, and take the loop from its traceback."""
        tb, loops = error.__traceback__, [made.__code__ for made in self._made.values()]
        while tb is not None and tb.tb_frame.f_code not in loops:
            tb = tb.tb_next
        if tb is None or tb.tb_lineno != self.code.co_firstlineno:
            return False
        error.__traceback__ = tb.tb_next
        return True


def process_loop(cls: type[Any]) -> ProcessLoop | None:
    """Return the loop over a batch for objects of this class, whose `emit` adds to columns; None where they are to be called."""
    try:
        definer = next(each for each in cls.__mro__ if "process" in vars(each))
        function = vars(definer)["process"]
        if definer is Bolt or not isinstance(function, FunctionType) or not _is_plain(cls):
            return None
        definition, imported = source_of(function, definer.__name__)
        Checker(function.__code__).check(definition)
        return ProcessLoop(function, definition, definer.__name__, imported, _is_alone(cls, function))
    except (RefusedError, SyntaxError, ValueError, RecursionError):
        return None


def _is_plain(cls: type[Any]) -> bool:
    """Return whether attributes of objects are looked up as always, and none stands for other code."""
    for name in ("__getattribute__", "__new__"):
        if getattr(cls, name) is not getattr(object, name):
            return False
    for _, code in codes_of_methods(cls, (), cls.__mro__[cls.__mro__.index(Bolt) :]):
        if {"setattr", "__setattr__", "__dict__"} & set(code.co_names):
            return False
        stored = (each.argval for each in dis.get_instructions(code) if each.opname == "STORE_ATTR")
        if not _STORED.isdisjoint(stored):
            return False
    return True


def _is_alone(cls: type[Any], function: FunctionType) -> bool:
    """Return whether `emit` of its objects is called by their `process` only, with nothing of theirs between its value and the column."""
    for _, code in codes_of_methods(cls, {"emit"}, cls.__mro__[cls.__mro__.index(Bolt) :]):
        if passes_itself(code) or (code is not function.__code__ and "emit" in code.co_names):
            return False
    return True


class _Writer(ast.NodeTransformer):
    """Makes the loop of a definition."""

    def __init__(self, definition: ast.FunctionDef, local: Collection[str], keyed: bool, begins: bool) -> None:
        """`local`: variables of the function."""
        self._definition = copy.deepcopy(definition)
        arguments = (*definition.args.posonlyargs, *definition.args.args)
        self._self, self._key, self._value = (each.arg for each in arguments)
        self._keyed, self._with_begins = keyed, begins
        self._local = local

    def written(self) -> ast.FunctionDef:
        """Return the definition of the loop."""
        definition = self._definition
        body: list[ast.stmt] = []
        if self._with_begins:  # also where there is no object
            body += ast.parse(f"{_BEGINS}.append(len({_KEYS}))").body
        if self._keyed:
            body += ast.parse(f"if {self._self} is None: {self._self} = {_ELEMENTS}[{self._key}]").body
        for statement in body:
            for each in ast.walk(statement):
                ast.copy_location(each, definition)
        head = f"def process({_ROWS}, {_ELEMENTS if self._keyed else self._self}, {_KEYS}, {_VALUES}, {_BEGINS}):"
        written = [self.visit(each) for each in definition.body]
        body += [made for each in written for made in (each if isinstance(each, list) else [each])]
        target = f"{self._key}, {self._value}" + (f", {self._self}" if self._keyed else "")
        return self._around(head, target, body)

    def mapped(self) -> ast.FunctionDef | None:
        """Return the definition of the loop over values; None where it emits otherwise, or its value follows from more."""
        body = [each for each in self._definition.body if not _is_text(each)]
        if len(body) != 1 or not isinstance(body[0], ast.Expr) or not self._emits(body[0].value):
            return None
        assert isinstance(body[0].value, ast.Call)
        key, value = body[0].value.args
        others = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
        if not isinstance(key, ast.Name) or key.id != self._key or others & {self._key, self._self}:
            return None
        # A comprehension adds to a list without a call.
        around = ast.parse(f"def process({_ROWS}): return [None for {self._value} in {_ROWS}]").body[0]
        assert isinstance(around, ast.FunctionDef)
        for each in ast.walk(around):
            ast.copy_location(each, self._definition)
        returned = around.body[0]
        assert isinstance(returned, ast.Return) and isinstance(returned.value, ast.ListComp)
        returned.value.elt = value
        return around

    def _around(self, head: str, target: str, body: list[ast.stmt]) -> ast.FunctionDef:
        around = ast.parse(f"{head}\n    for {target} in {_ROWS}: pass").body[0]
        assert isinstance(around, ast.FunctionDef)
        loop = around.body[0]
        assert isinstance(loop, ast.For)
        for each in ast.walk(around):
            ast.copy_location(each, self._definition)
        loop.body = body
        return around

    def visit_Return(self, node: ast.Return) -> Any:
        ends: list[ast.stmt] = [ast.Continue()]
        if node.value is not None:
            ends.insert(0, ast.Expr(node.value))
        return [ast.copy_location(each, node) for each in ends]

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        if not self._emits(call):
            return node
        assert isinstance(call, ast.Call)
        key, value = call.args
        if self._simple(key):
            made = [self._add(_VALUES, value, node), self._add(_KEYS, key, node)]
        elif self._simple(value):
            made = [self._add(_KEYS, key, node), self._add(_VALUES, value, node)]
        else:
            # Both before either is added: what they call may emit.
            made = [
                ast.Assign(targets=[ast.Name(_KEY, ast.Store())], value=key),
                ast.Assign(targets=[ast.Name(_VALUE, ast.Store())], value=value),
                self._add(_KEYS, ast.Name(_KEY, ast.Load()), node),
                self._add(_VALUES, ast.Name(_VALUE, ast.Load()), node),
            ]
        for each in made:
            _locate(each, node)
        return made

    def _emits(self, node: ast.expr) -> bool:
        """Return whether this is `self.emit(key, value)`."""
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "emit"
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == self._self
            and len(node.args) == 2
            and not node.keywords
            and not any(isinstance(each, ast.Starred) for each in node.args)
        )

    def _simple(self, node: ast.expr) -> bool:
        """Return whether it cannot raise, and is the same before and after the other."""
        return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in self._local)

    def _add(self, column: str, value: ast.expr, node: ast.stmt) -> ast.stmt:
        append = ast.Attribute(ast.Name(column, ast.Load()), "append", ast.Load())
        return ast.Expr(ast.Call(append, [value], []))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _locate(node: ast.AST, at: ast.AST) -> None:
    """Give what was made the place of what it stands for; what was there before has one."""
    for each in ast.walk(node):
        if "lineno" in each._attributes and not hasattr(each, "lineno"):
            ast.copy_location(each, at)
