"""Counts of the Python that a workload executes in eSault's own code, and its peak memory: exact, the same each time.

The counts depend on the version of Python, which decides what a line is compiled to, and on nothing else: neither on time nor on the
hash seed. What C does inside one call is not seen (a copy of a list is one call, however long the list): `bench.smoke.ratio` is for that.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from bench.smoke.workloads import Workload

__all__ = ["Bytecodes", "Calls", "Counts", "count"]

#: modules of eSault that stand around the data path in a test: what is in them is not counted
ELSEWHERE = ("esault.testing", "esault.control")


def _name(frame: FrameType) -> str | None:
    """`module:function` of code that is counted: that of eSault but ELSEWHERE; None for all other."""
    module = frame.f_globals.get("__name__", "")
    # The constructor of a NamedTuple is made in a module of its own.
    ours = module.partition(".")[0] == "esault" and not module.startswith(ELSEWHERE)
    if not ours and not module.startswith("namedtuple_"):
        return None
    return f"{module}:{getattr(frame.f_code, 'co_qualname', frame.f_code.co_name)}"


class Bytecodes:
    """Within `with`: counts the bytecodes that are executed, by the function they stand in.

    Up to Python 3.11 by a trace function: one that was set before is put back afterwards and sees nothing in between. From 3.12 on by
    `sys.monitoring`, since there trace functions miss bytecodes (measured with 3.12.1 and 3.13.0: a first run counts up to 15 % less
    than the next).
    """

    def __init__(self) -> None:
        self._executed: Counter[CodeType] = Counter()
        self._names: dict[CodeType, str | None] = {}

    @property
    def by_function(self) -> Counter[str]:
        """`module:function` -> bytecodes."""
        found: Counter[str] = Counter()
        for code, times in self._executed.items():
            found[self._names[code] or ""] += times
        return found

    def _is_counted(self, frame: FrameType) -> bool:
        code = frame.f_code
        if code not in self._names:
            self._names[code] = _name(frame)
        return self._names[code] is not None

    if sys.version_info >= (3, 12):

        def __enter__(self) -> Bytecodes:
            """Raises RuntimeError where other tools have taken all places."""
            monitoring, executed = sys.monitoring, self._executed
            free = [tool for tool in range(6) if monitoring.get_tool(tool) is None]
            if not free:
                raise RuntimeError("all tools of sys.monitoring are in use: count where no profiler or debugger runs")
            self._tool = tool = free[-1]
            monitoring.use_tool_id(tool, "esault bench smoke")

            def started(code: CodeType, offset: int) -> Any:
                if self._is_counted(sys._getframe(1)):
                    monitoring.set_local_events(tool, code, monitoring.events.INSTRUCTION)
                return monitoring.DISABLE  # once for each function is enough

            def stepped(code: CodeType, offset: int) -> None:
                executed[code] += 1

            monitoring.register_callback(tool, monitoring.events.PY_START, started)
            monitoring.register_callback(tool, monitoring.events.INSTRUCTION, stepped)
            monitoring.set_events(tool, monitoring.events.PY_START)
            monitoring.restart_events()  # what was disabled for this tool's place before
            return self

        def __exit__(self, *error: object) -> None:
            monitoring, tool = sys.monitoring, self._tool
            monitoring.set_events(tool, 0)
            for code, name in self._names.items():
                if name is not None:
                    monitoring.set_local_events(tool, code, 0)
            for event in (monitoring.events.PY_START, monitoring.events.INSTRUCTION):
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)

    else:

        def __enter__(self) -> Bytecodes:
            self._before = sys.gettrace()
            #: what counts for each code, and says how many: that takes a third of the time of a method that looks up its place
            self._steppers: dict[CodeType, Any] = {}
            sys.settrace(self._called)
            return self

        def __exit__(self, *error: object) -> None:
            sys.settrace(self._before)
            for code, (_, executed) in self._steppers.items():
                self._executed[code] += executed()

        def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
            if not self._is_counted(frame):
                return None
            frame.f_trace_lines = False
            frame.f_trace_opcodes = True
            if frame.f_code not in self._steppers:
                self._steppers[frame.f_code] = _stepper()
            return self._steppers[frame.f_code][0]


def _stepper() -> tuple[Any, Any]:
    """Return what is called for each bytecode, and what says for how many it was."""
    n = 0

    def stepped(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal n
        if event == "opcode":
            n += 1
        return stepped

    return stepped, lambda: n


class Calls:
    """Within `with`: counts calls of eSault's functions and from them (a generator's resumption is one), and from them into C.

    Calls from C into C, as of the function that `map` has, are not seen.
    """

    def __init__(self) -> None:
        self.python = 0
        self.c = 0
        self._known: dict[CodeType, bool] = {}

    def __enter__(self) -> Calls:
        self._before = sys.getprofile()
        sys.setprofile(self._happened)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(self._before)

    def _happened(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            caller = frame.f_back
            if self._is_counted(frame) or (caller is not None and self._is_counted(caller)):
                self.python += 1
        elif event == "c_call" and self._is_counted(frame):
            self.c += 1

    def _is_counted(self, frame: FrameType) -> bool:
        known = self._known.get(frame.f_code)
        if known is None:
            known = self._known[frame.f_code] = _name(frame) is not None
        return known


@dataclass(frozen=True)
class Counts:
    """Of a workload."""

    #: bytecodes, Python calls and C calls a tuple; peak memory in KiB
    figures: dict[str, float]
    #: `module:function` -> its bytecodes a tuple
    functions: dict[str, float]


#: makes `__init__` of classes, once for each class and when there have been some objects of it
_ONCE = "esault.value_class:"


def count(workload: Workload) -> Counts:
    """Run it four times: the tuples' share is what a longer run takes beyond a shorter one. Raises RuntimeError."""
    short, long = workload.rows(workload.warm), workload.rows(workload.warm + workload.more)
    workload.run(short)  # what is done once in a process
    runs = []
    for rows in (short, long):
        with Bytecodes() as bytecodes, Calls() as calls:
            workload.run(rows)
        runs.append((bytecodes.by_function, calls))
    (before, calls_before), (after, calls_after) = runs
    after.subtract(before)
    for name in [name for name in after if name.startswith(_ONCE)]:
        del after[name]
    functions = {name: executed / workload.tuples for name, executed in after.items() if executed}
    figures = {
        "bytecodes": sum(after.values()) / workload.tuples,
        "Python calls": (calls_after.python - calls_before.python) / workload.tuples,
        "C calls": (calls_after.c - calls_before.c) / workload.tuples,
        "peak memory": _peak(workload, long) / 1024,
    }
    return Counts(figures, functions)


def _peak(workload: Workload, rows: list[Any]) -> int:
    """Bytes that Python allocated beyond what there was. Garbage in cycles counts: it is not collected in between."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        workload.run(rows)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
        gc.enable()
