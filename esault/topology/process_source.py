"""The source of a bolt's `process`, as a tree, where it is what runs; and such a tree compiled as it was."""

from __future__ import annotations
import __future__

import ast
import linecache
from collections.abc import Iterable
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType
from typing import Any, NamedTuple

__all__ = ["RefusedError", "Source", "compiled", "source_of", "source_of_function"]

#: characters of a module: to parse more takes a tenth of a second, in which nothing is processed
MOST_TEXT = 200_000
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


#: of functions that do not simply return what follows from their arguments
_OTHER = CO_ASYNC_GENERATOR | CO_COROUTINE | CO_GENERATOR | CO_ITERABLE_COROUTINE | CO_VARARGS | CO_VARKEYWORDS


class RefusedError(Exception):
    """It cannot be written out; never leaves what asks whether it can."""


class Source(NamedTuple):
    """A function with its definition, which is that of the code that runs."""

    #: a function; said so, it would be taken for a method of this class
    function: Any
    code: CodeType
    definition: ast.FunctionDef | ast.Lambda
    #: the class that it is a method of
    within: str | None
    #: names that its module imports
    imported: tuple[str, ...]


def source_of(function: FunctionType, within: str) -> tuple[ast.FunctionDef, tuple[str, ...]]:
    """Return the definition, which is that of the code that runs, and the names that its module imports. Raises RefusedError, SyntaxError."""
    code = function.__code__
    if code.co_freevars or code.co_argcount != 3 or code.co_kwonlyargcount or function.__defaults__:
        raise RefusedError
    definitions, _, imported = _definitions(_text(function))
    definition = definitions.get((code.co_firstlineno, code.co_name))
    if definition is None or definition.args.vararg or definition.args.kwarg:
        raise RefusedError
    if definition.body[0].lineno == definition.lineno:
        raise RefusedError  # the line of the definition stands for what the loop does between two tuples
    if not _same(compiled(definition, within, imported, code), code):
        raise RefusedError  # the file has changed since it was loaded
    return definition, imported


def source_of_function(function: FunctionType) -> tuple[Source, str, ast.expr]:
    """Return a function of one argument that only returns a value, that argument and that value. Raises RefusedError, SyntaxError."""
    code = function.__code__
    if code.co_freevars or code.co_argcount != 1 or code.co_kwonlyargcount or code.co_flags & _OTHER:
        raise RefusedError
    _, functions, imported = _definitions(_text(function))
    for definition in functions.get((code.co_firstlineno, code.co_name), ()):
        source = Source(function, code, definition, None, imported)
        found = compiled(definition, None, imported, code)
        # Several lambdas may stand in a line.
        if _same(found, code) and _positions(found) == _positions(code):
            body = [definition.body] if isinstance(definition, ast.Lambda) else definition.body
            values = [each.value if isinstance(each, ast.Return) else each for each in body if not _is_text(each)]
            if len(values) != 1 or not isinstance(values[0], ast.expr):
                raise RefusedError
            return source, code.co_varnames[0], values[0]
    raise RefusedError


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _positions(code: CodeType) -> list[object]:
    return list(code.co_positions()) if hasattr(code, "co_positions") else []


def _text(function: FunctionType) -> str:
    text = "".join(linecache.getlines(function.__code__.co_filename, function.__globals__))
    if len(text) > MOST_TEXT:
        raise RefusedError
    return text


_Methods = dict[tuple[int, str], ast.FunctionDef]
_Functions = dict[tuple[int, str], list["ast.FunctionDef | ast.Lambda"]]


@lru_cache(maxsize=4)
def _definitions(text: str) -> tuple[_Methods, _Functions, tuple[str, ...]]:
    """Return the methods and all functions of a module by the line and name of each, without decorated ones, and the names that it imports."""
    tree = ast.parse(text)
    functions: _Functions = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) or (isinstance(node, ast.FunctionDef) and not node.decorator_list):
            functions.setdefault((node.lineno, getattr(node, "name", "<lambda>")), []).append(node)
    methods: _Methods = {}
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
    return methods, functions, tuple(sorted(imported - {"*"}))


def compiled(
    definition: ast.FunctionDef | ast.Lambda, within: str | None, imported: Iterable[str], code: CodeType
) -> CodeType:
    """Compile a definition as that of a method, in a module that imports these names: what is called of such a one is compiled otherwise.

    `within` is the name of the class; None: it is no method.
    """
    around: ast.stmt = ast.Expr(definition) if isinstance(definition, ast.Lambda) else definition
    if within is not None:
        around = ast.ClassDef(name=within, bases=[], keywords=[], body=[around], decorator_list=[])
        if "type_params" in around._fields:
            vars(around)["type_params"] = []
    imports = [ast.Import(names=[ast.alias(name)]) for name in imported]
    tree = ast.fix_missing_locations(ast.Module(body=[*imports, around], type_ignores=[]))
    made = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    if within is not None:
        made = _code_in(made, within)
    return _code_in(made, getattr(definition, "name", "<lambda>"))


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
