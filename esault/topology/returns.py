"""Values that hooks return are thrown away, so that a bolt which returns its tuples instead of emitting them stays silent."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

__all__ = ["returned_instead_of_emitted"]


def returned_instead_of_emitted(hook: Any, classes: Iterable[type]) -> str | None:
    """The text of a value that `hook` returns although none of these classes emits anything; None: nothing of the kind.

    A call passes, for what it does may be the purpose (`return client.send(value)`), as does what has no source to read.
    """
    if any("emit" in name for cls in classes for name in _names(cls)):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(hook))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)) or tree.name != hook.__name__:
        return None  # a lambda, or the file is not what it was when it was imported
    for value in _returned(tree.body):
        if isinstance(value, (ast.Constant, ast.Call, ast.Await)):
            continue  # `return None`, `return True`: a way out
        # `return self.count` may serve a class of the user's own; a tuple, or a list of them, can only be meant for the engine.
        of_self = any(isinstance(node, ast.Name) and node.id == "self" for node in ast.walk(value))
        if isinstance(value, (ast.Tuple, ast.List)) or not of_self:
            return ast.unparse(value)
    return None


def _returned(body: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """The values of a function's own `return` statements, not of those of functions within it."""
    for node in body:
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _returned(ast.iter_child_nodes(node))


def _names(cls: type) -> Iterator[str]:
    """The names that the class's functions use, with those of functions within them."""
    for thing in vars(cls).values():
        function = inspect.unwrap(getattr(thing, "__func__", thing)) if callable(thing) else thing
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            yield from _code_names(code)


def _code_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_names(constant)
