"""One loop for several stages of which each brings forth one value from one: bolts that are chained, or function steps."""

from __future__ import annotations

import ast
import builtins
import copy
import dis
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from esault.topology.closed_expression import LINES, Closed, Place, callers
from esault.topology.process_loop import ProcessLoop
from esault.topology.process_source import RefusedError, compiled, source_of_function

__all__ = ["FusedMap", "fused_map"]

#: what the loop is compiled as
_FILE = __file__


class FusedMap:
    """The loop of stages in a row, in which only what stands in them runs while it goes over text and numbers."""

    def __init__(self, closed: Closed) -> None:
        self._closed = closed
        self._function = _function(closed)

    def holds(self) -> bool:
        """Return whether it still does what the stages do: what they call is what it was."""
        return self._closed.holds()

    def run(self, values: Iterator[Any]) -> list[Any]:
        """Return what the last stage brings forth of each value, which is one of `SCALARS`. What a stage raises comes as it is."""
        result: list[Any] = self._function(values)
        return result

    def blame(self, error: BaseException) -> int | None:
        """Return the number of the stage that raised, and have the traceback show it as if it had been called; None: it was no stage."""
        tb = error.__traceback__
        while tb is not None and tb.tb_frame.f_code is not self._function.__code__:
            tb = tb.tb_next
        if tb is None or tb.tb_lineno < LINES:
            return None
        number, positions = tb.tb_lineno // LINES, _positions_at(tb)
        shown = tb.tb_next
        for place, call in callers(self._closed.places, number):
            at = _place_of(call) if call is not None else _in_file(positions, tb.tb_lineno)
            frame = _frame(place)
            shown = TracebackType(shown, frame, _instruction(frame.f_code, at), at[0] or 1)
        error.__traceback__ = shown
        blamed = self._closed.places[number]
        assert blamed is not None
        return blamed.stage


def fused_map(stages: Sequence[ProcessLoop | Callable[..., Any]]) -> FusedMap | None:
    """Return the loop of these stages, each the `process` of a bolt or the function of a step; None where they may run other code."""
    closed, variable = Closed(), "_esault_value"
    try:
        for number, stage in enumerate(stages):
            if isinstance(stage, (ProcessLoop, FunctionType)):
                source, parameter, value = (
                    stage.value() if isinstance(stage, ProcessLoop) else source_of_function(stage)
                )
                variable = closed.add(source, parameter, value, variable, number)
            else:
                variable = closed.add_plain(stage, variable)
        return FusedMap(closed)
    except (RefusedError, SyntaxError, ValueError, RecursionError):
        return None


def _function(closed: Closed) -> FunctionType:
    around = ast.parse("def run(_esault_rows): return [None for _esault_value in _esault_rows]").body[0]
    assert isinstance(around, ast.FunctionDef)
    returned = around.body[0]
    assert isinstance(returned, ast.Return) and isinstance(returned.value, ast.ListComp)
    *before, (_, last) = closed.bindings
    # The interpreter compiles `for name in [expression]` as an assignment.
    returned.value.generators += [
        ast.comprehension(
            _located(ast.Name(name, ast.Store()), value), _located(ast.List([value], ast.Load()), value), [], 0
        )
        for name, value in before
    ]
    returned.value.elt = last
    tree = ast.fix_missing_locations(ast.Module([around], []))
    code = _only(compile(tree, _FILE, "exec", dont_inherit=True))
    # Until Python 3.12 a comprehension is a function within, which takes the iterator.
    within = next((each for each in code.co_consts if isinstance(each, CodeType)), code)
    return FunctionType(within, {"__builtins__": builtins, "__name__": __name__})


def _located(made: Any, at: ast.expr) -> Any:
    return ast.copy_location(made, at)


def _only(code: CodeType) -> CodeType:
    return next(each for each in code.co_consts if isinstance(each, CodeType))


#: line, last line, column, last column
_Positions = tuple[Any, Any, Any, Any]


def _positions_at(tb: TracebackType) -> _Positions:
    """Return where the instruction stands that raised; Python 3.10 only knows the line."""
    code = tb.tb_frame.f_code
    if not hasattr(code, "co_positions"):
        return tb.tb_lineno, None, None, None
    return _nth(code.co_positions(), tb.tb_lasti // 2)


def _nth(positions: Iterable[_Positions], index: int) -> _Positions:
    return next(each for number, each in enumerate(positions) if number == index)


def _in_file(positions: _Positions, line: int) -> _Positions:
    first, last, *columns = positions
    return (first or line) % LINES, last and last % LINES, columns[0], columns[1]


def _place_of(node: ast.expr) -> _Positions:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _frame(place: Place) -> FrameType:
    """Return a frame of a function that has not begun, with the places that its code has in the file."""
    source = place.source
    definition = copy.deepcopy(source.definition)
    # A generator has a frame before any of it runs.
    if isinstance(definition, ast.Lambda):
        definition.body = _located(ast.Tuple([definition.body, ast.Yield()], ast.Load()), definition.body)
    else:
        definition.body.append(_located(ast.Expr(ast.Yield()), definition.body[-1]))  # type: ignore[arg-type]
    code = compiled(definition, source.within, source.imported, source.code)
    frame: FrameType = FunctionType(code, source.function.__globals__)(*[None] * code.co_argcount).gi_frame
    return frame


def _instruction(code: CodeType, at: _Positions) -> int:
    """Return the instruction that stands at a place, or else in its line."""
    if hasattr(code, "co_positions"):
        for number, each in enumerate(code.co_positions()):
            if each == at:
                return 2 * number
    return next((offset for offset, line in dis.findlinestarts(code) if line == at[0]), 0)
