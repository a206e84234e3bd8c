"""The loop over a batch with a bolt's `process` written out in it: to call it for each tuple, and `emit` for each it puts out, costs more than many do.

A `process` is written out where nothing else changes by it: its source is at hand and is what runs, it keeps no variable from one tuple
to the next, leaves nothing behind that looks at its variables later, and is an ordinary function of the class. Of what is more than that
the calls are a small part anyway. Lines, names and files in tracebacks are those of the user's.

It is one module of over 300 lines: what may be written out and how it is written rest on the same rules of Python.
"""

from __future__ import annotations
import __future__

import ast
import copy
import dis
import linecache
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from esault.topology.bolt import Bolt
from esault.topology.method_code import codes_of_methods

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
#: what looks at variables, or at the class that a function stands in
_LOOKING = {"locals", "vars", "dir", "eval", "exec", "super", "__class__", "breakpoint"}
#: attributes that stand for other code than the class has
_STORED = {"process", "emit", "__class__"}
#: characters of a module: to parse more takes a tenth of a second, in which nothing is processed
MOST_TEXT = 200_000
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
#: what keeps variables for later, or is a function of another kind
_REFUSED = (
    ast.Lambda,
    ast.GeneratorExp,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
    ast.NamedExpr,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)


class _RefusedError(Exception):  # never leaves this module
    """It cannot be written out."""


class ProcessLoop:
    """The loops of one class's `process`."""

    def __init__(
        self, function: FunctionType, definition: ast.FunctionDef, within: str, imported: tuple[str, ...]
    ) -> None:
        self.function = function
        self.code = function.__code__
        self._definition, self._within, self._imported = definition, within, imported
        self._made: dict[tuple[bool, bool], FunctionType] = {}

    def loop(self, keyed: bool, begins: bool) -> Callable[..., None]:
        """Return the loop: called with pairs of keys and values, the object (`keyed`: a dict of them by key), and the lists of keys and values
        that were emitted.

        `begins`: and with a list to which the length of the first one is added before each tuple.
        """
        made = self._made.get((keyed, begins))
        if made is None:
            definition = _Writer(self._definition, self.code.co_varnames, keyed, begins).written()
            code = _compiled(definition, self._within, self._imported, self.code)
            made = self._made[keyed, begins] = FunctionType(code, self.function.__globals__)
        return made

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
        definition, imported = _source_of(function, definer.__name__)
        _Checker(function.__code__).check(definition)
        return ProcessLoop(function, definition, definer.__name__, imported)
    except (_RefusedError, SyntaxError, ValueError, RecursionError):
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


# the source ------------------------------------------------------------------------------------------


def _source_of(function: FunctionType, within: str) -> tuple[ast.FunctionDef, tuple[str, ...]]:
    """Return the definition, which is that of the code that runs, and the names that its module imports. Raises _RefusedError, SyntaxError."""
    code = function.__code__
    if code.co_freevars or code.co_argcount != 3 or code.co_kwonlyargcount or function.__defaults__:
        raise _RefusedError
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if len(text) > MOST_TEXT:
        raise _RefusedError
    definitions, imported = _definitions(text)
    definition = definitions.get((code.co_firstlineno, code.co_name))
    if definition is None or definition.args.vararg or definition.args.kwarg:
        raise _RefusedError
    if definition.body[0].lineno == definition.lineno:
        raise _RefusedError  # the line of the definition stands for what the loop does between two tuples
    if not _same(_compiled(definition, within, imported, code), code):
        raise _RefusedError  # the file has changed since it was loaded
    return definition, imported


@lru_cache(maxsize=4)
def _definitions(text: str) -> tuple[dict[tuple[int, str], ast.FunctionDef], tuple[str, ...]]:
    """Return the methods of a module by the line and name of each, without those that are decorated, and the names that it imports."""
    tree = ast.parse(text)
    methods: dict[tuple[int, str], ast.FunctionDef] = {}
    imported: set[str] = set()
    left: list[tuple[ast.AST, bool]] = [(tree, True)]
    while left:
        node, of_module = left.pop()
        for each in ast.iter_child_nodes(node):
            if isinstance(each, (ast.Import, ast.ImportFrom)):
                if of_module:
                    imported.update(alias.asname or alias.name.partition(".")[0] for alias in each.names)
                continue
            if isinstance(node, ast.ClassDef) and isinstance(each, ast.FunctionDef) and not each.decorator_list:
                methods[each.lineno, each.name] = each
            if not isinstance(each, ast.expr):
                within = isinstance(each, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
                left.append((each, of_module and not within))
    return methods, tuple(sorted(imported - {"*"}))


def _compiled(definition: ast.FunctionDef, within: str, imported: Iterable[str], code: CodeType) -> CodeType:
    """Compile a definition as that of a method, in a module that imports these names: what is called of such a one is compiled otherwise."""
    around = ast.ClassDef(name=within, bases=[], keywords=[], body=[definition], decorator_list=[])
    if "type_params" in around._fields:
        vars(around)["type_params"] = []
    imports = [ast.Import(names=[ast.alias(name)]) for name in imported]
    tree = ast.fix_missing_locations(ast.Module(body=[*imports, around], type_ignores=[]))
    module = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    return _code_in(_code_in(module, within), definition.name)


def _code_in(code: CodeType, name: str) -> CodeType:
    return next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name)


def _same(one: CodeType, other: CodeType) -> bool:
    """Return whether two pieces of code do the same."""
    names = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    if any(getattr(one, name) != getattr(other, name) for name in names) or len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _same(mine, its) if isinstance(mine, CodeType) and isinstance(its, CodeType) else repr(mine) == repr(its)
        for mine, its in zip(one.co_consts, other.co_consts)
    )


# what may be written out ---------------------------------------------------------------------------------


class _Checker:
    """Follows which variables have a value for certain: one that has not would have that of the tuple before."""

    def __init__(self, code: CodeType) -> None:
        self._locals = {*code.co_varnames, *code.co_cellvars}
        self._self = code.co_varnames[0]

    def check(self, definition: ast.FunctionDef) -> None:
        """Raises _RefusedError."""
        for node in ast.walk(definition):
            if node is not definition and isinstance(node, _REFUSED):
                raise _RefusedError
            if isinstance(node, ast.Name):
                if node.id in _LOOKING or node.id.startswith("_esault"):
                    raise _RefusedError
                if node.id == self._self and not isinstance(node.ctx, ast.Load):
                    raise _RefusedError
        arguments = (*definition.args.posonlyargs, *definition.args.args)
        self._block(definition.body, {each.arg for each in arguments}, False)

    def _block(self, body: Iterable[ast.stmt], known: set[str], inner: bool) -> set[str] | None:
        """Follow statements; return what is known behind them, None where nothing comes there."""
        found: set[str] | None = set(known)
        for statement in body:
            if found is None:
                break  # never reached
            found = self._statement(statement, found, inner)
        return found

    def _statement(self, node: ast.stmt, known: set[str], inner: bool) -> set[str] | None:
        """`inner`: within a loop of the user's, where `continue` is not the end of this tuple."""
        if isinstance(node, (ast.Pass, ast.Expr)):
            self._loads(node, known)
            return known
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            if node.value is None:
                return known
            self._loads(node.value, known)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return known.union(*(self._stores(each, known) for each in targets))
        if isinstance(node, ast.AugAssign):
            self._loads(node.value, known)
            if isinstance(node.target, ast.Name):
                self._load(node.target.id, known)
            else:
                self._loads(node.target, known)
            return known
        if isinstance(node, (ast.Return, ast.Raise)):
            if inner and isinstance(node, ast.Return):
                raise _RefusedError
            self._loads(node, known)
            return None
        if isinstance(node, (ast.Break, ast.Continue)):
            return None
        if isinstance(node, ast.Assert):
            self._loads(node, known)
            return known
        return self._compound(node, known, inner)

    def _compound(self, node: ast.stmt, known: set[str], inner: bool) -> set[str] | None:
        if isinstance(node, ast.If):
            self._loads(node.test, known)
            return _both(self._block(node.body, known, inner), self._block(node.orelse, known, inner))
        if isinstance(node, (ast.For, ast.While)):
            if isinstance(node, ast.For):
                self._loads(node.iter, known)
                within = known | self._stores(node.target, known)
            else:
                self._loads(node.test, known)
                within = known
            self._block(node.body, within, True)
            self._block(node.orelse, known, inner)
            return known
        if isinstance(node, ast.With):
            for item in node.items:
                self._loads(item.context_expr, known)
                if item.optional_vars is not None:
                    known = known | self._stores(item.optional_vars, known)
            self._block(node.body, known, inner)
            return known  # it may end in the midst, where errors are suppressed
        if isinstance(node, ast.Try) and not node.finalbody:
            behind = self._block(node.body, known, inner)
            found = None if behind is None else self._block(node.orelse, behind, inner)
            for handler in node.handlers:
                if handler.type is not None:
                    self._loads(handler.type, known)
                found = _both(found, self._block(handler.body, known | {handler.name or ""}, inner))
            return found
        raise _RefusedError

    def _stores(self, target: ast.expr, known: set[str]) -> set[str]:
        """Return the variables that an assignment to this sets."""
        if isinstance(target, ast.Name):
            return {target.id}
        if isinstance(target, (ast.Tuple, ast.List)):
            return set().union(*(self._stores(each, known) for each in target.elts))
        if isinstance(target, ast.Starred):
            return self._stores(target.value, known)
        self._loads(target, known)
        return set()

    def _loads(self, node: ast.AST, known: set[str]) -> None:
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)):
            own = {
                each.id
                for generator in node.generators
                for each in ast.walk(generator.target)
                if isinstance(each, ast.Name)
            }
            known = known | own
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self._load(node.id, known)
            return
        for each in ast.iter_child_nodes(node):
            self._loads(each, known)

    def _load(self, name: str, known: set[str]) -> None:
        if name in self._locals and name not in known:
            raise _RefusedError


def _both(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


# writing it out ---------------------------------------------------------------------------------------------


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
        if self._keyed:
            body += ast.parse(f"{self._self} = {_ELEMENTS}[{self._key}]").body
        if self._with_begins:
            body += ast.parse(f"{_BEGINS}.append(len({_KEYS}))").body
        around = ast.parse(
            f"def process({_ROWS}, {_ELEMENTS if self._keyed else self._self}, {_KEYS}, {_VALUES}, {_BEGINS}):\n"
            f"    for {self._key}, {self._value} in {_ROWS}: pass"
        ).body[0]
        assert isinstance(around, ast.FunctionDef)
        loop = around.body[0]
        assert isinstance(loop, ast.For)
        for statement in (*body, around):
            for each in ast.walk(statement):
                ast.copy_location(each, definition)
        written = [self.visit(each) for each in definition.body]
        loop.body = [*body, *(made for each in written for made in (each if isinstance(each, list) else [each]))]
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


def _locate(node: ast.AST, at: ast.AST) -> None:
    """Give what was made the place of what it stands for; what was there before has one."""
    for each in ast.walk(node):
        if "lineno" in each._attributes and not hasattr(each, "lineno"):
            ast.copy_location(each, at)
