"""The source of a bolt's `process`, as a tree, where it is what runs; and such a tree compiled as it was."""

from __future__ import annotations
import __future__

import ast
import linecache
from collections.abc import Iterable
from functools import lru_cache
from types import CodeType, FunctionType

__all__ = ["RefusedError", "compiled", "source_of"]

#: characters of a module: to parse more takes a tenth of a second, in which nothing is processed
MOST_TEXT = 200_000
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


class RefusedError(Exception):
    """It cannot be written out; never leaves what asks whether it can."""


def source_of(function: FunctionType, within: str) -> tuple[ast.FunctionDef, tuple[str, ...]]:
    """Return the definition, which is that of the code that runs, and the names that its module imports. Raises RefusedError, SyntaxError."""
    code = function.__code__
    if code.co_freevars or code.co_argcount != 3 or code.co_kwonlyargcount or function.__defaults__:
        raise RefusedError
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if len(text) > MOST_TEXT:
        raise RefusedError
    definitions, imported = _definitions(text)
    definition = definitions.get((code.co_firstlineno, code.co_name))
    if definition is None or definition.args.vararg or definition.args.kwarg:
        raise RefusedError
    if definition.body[0].lineno == definition.lineno:
        raise RefusedError  # the line of the definition stands for what the loop does between two tuples
    if not _same(compiled(definition, within, imported, code), code):
        raise RefusedError  # the file has changed since it was loaded
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


def compiled(definition: ast.FunctionDef, within: str, imported: Iterable[str], code: CodeType) -> CodeType:
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
