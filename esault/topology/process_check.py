"""A check whether the lines of a bolt's `process` mean the same in a loop: no variable may be seen by the next tuple, or by what is called later."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import CodeType

from esault.topology.process_source import RefusedError

__all__ = ["Checker"]

#: what looks at variables, or at the class that a function stands in
_LOOKING = {"locals", "vars", "dir", "eval", "exec", "super", "__class__", "breakpoint"}
#: what keeps variables for later, or is a function of another kind
_KEEPING = (
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


class Checker:
    """Follows which variables have a value for certain: one that has not would have that of the tuple before."""

    def __init__(self, code: CodeType) -> None:
        self._locals = {*code.co_varnames, *code.co_cellvars}
        self._self = code.co_varnames[0]

    def check(self, definition: ast.FunctionDef) -> None:
        """Raises RefusedError."""
        for node in ast.walk(definition):
            if node is not definition and isinstance(node, _KEEPING):
                raise RefusedError
            if isinstance(node, ast.Name):
                if node.id in _LOOKING or node.id.startswith("_esault"):
                    raise RefusedError
                if node.id == self._self and not isinstance(node.ctx, ast.Load):
                    raise RefusedError
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
                raise RefusedError
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
        raise RefusedError

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
            raise RefusedError


def _both(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
