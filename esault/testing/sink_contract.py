"""The contract of sinks as checks to run on one's own: what the engine relies on when it writes to one, and goes on after a crash.

Each object lives in a process of its own, and each process ends by SIGKILL: what a sink has only in memory is gone then. It is one module of over 300 lines: a run at a place is of no use without the laws.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from esault.background import BackgroundLoop, in_background
from esault.flow.send.sink_call import waited
from esault.testing.killable_process import KillableProcess
from esault.topology.context import Context
from esault.topology.sink import RunInfo, Sink, commits, commits_as_one, forgets_always

__all__ = ["check_sink"]

#: (key, value) pairs, as they are written and as they are read
_Rows = list[tuple[Any, Any]]

_LINEAGE = "lineage-1"
#: what a run may be killed behind
_STEPS = ("open", "write", "prepare", "commit")
_ROWS = tuple((f"k{number % 3}", number) for number in range(24))


def check_sink(
    make: Callable[[Path], Sink],
    read: Callable[[Path], Iterable[tuple[Any, Any]]],
    *,
    rows: Sequence[tuple[Any, Any]] = _ROWS,
    order: str = "key",
    parts: int = 3,
) -> int:
    """Check that a sink keeps what the engine relies on, and return the number of crashes that it was put through.

    `make(place)` returns a new sink, not opened, that writes to `place`, a path where nothing is yet; a sink that writes elsewhere
    takes `place.name` as a name. `read(place)` returns the (key, value) pairs that a reader sees there now. `rows`: what is
    written, each once, at least 8. `order="none"`: rows of a key may be read in another order than they were written.
    `parts`: as many sub-units write at once. Raises AssertionError, which names the law.

    The laws: nothing is seen before `commit`, and all of it behind it, each row once and those of a key in order. A handle can travel,
    and be committed by another process whose own died, and again. An epoch without rows changes nothing. What was prepared for a
    checkpoint that was given up is committed with the next one. A process may be killed behind each step: what belongs to the checkpoint
    is seen when it has been committed again, and what does not is never seen, also where there is no checkpoint; then the rows come anew.
    Sub-units do not disturb each other. What is written while a Future of `prepare` is open belongs to the next epoch.

    Hooks that are async, or return a Future, are waited for. A sink with `commit_all` is committed by it, with the handles of all
    sub-units; then, where it has a `commit` as well, by that. Needs a system with `fork`.
    """
    assert order in ("key", "none"), f"order={order!r}: write 'key' or 'none'"
    assert len(rows) >= 8, f"rows: at least 8 are needed, {len(rows)} are given"
    with tempfile.TemporaryDirectory(prefix="esault-sink-") as folder:
        checked = _Checked(make, read, list(rows), order == "key", Path(folder))
        sink = make(Path(folder) / "asked")
        if not commits_as_one(sink):
            return checked.check(parts, commits(sink))
        checked.as_one = True
        crashes = checked.check(parts, True)
        checked.as_one = False
        return crashes if type(sink).commit is Sink.commit else checked.check(parts, True)


class _Server:
    """Calls the hooks of one sink, as the engine does."""

    def __init__(self, make: Callable[[], Sink], run_dir: str) -> None:
        self._make, self._run_dir = make, run_dir
        self._sink: Sink | None = None
        self._background = BackgroundLoop()

    def __call__(self, hook: str, arguments: tuple[Any, ...]) -> Any:
        if hook == "prepare_beside":
            # Nothing else is called while a coroutine runs; a Future, and the engine goes on writing.
            epoch, *rows = arguments
            prepared = self._called("prepare", (epoch,))
            if not isinstance(prepared, Future):
                prepared = waited(prepared, self._background)
            waited(self._called("write", tuple(rows)), self._background)
            return waited(prepared, self._background)
        return waited(self._called(hook, arguments), self._background)

    def _called(self, hook: str, arguments: tuple[Any, ...]) -> Any:
        if self._sink is None:
            self._sink = self._make()
            assert isinstance(self._sink, Sink), f"make() returned {self._sink!r}, which is no Sink"
        sink = self._sink
        if hook == "begin":
            run, resumed = arguments
            return sink.begin(RunInfo(run, "contract", "sink", resumed, _LINEAGE))
        if hook == "open":
            run, number = arguments
            sink.context = Context(
                "sink", sub_unit=number, run=run, lineage=_LINEAGE, in_thread=in_background, run_dir=self._run_dir
            )
            return sink.open(sink.context)
        if hook == "write":
            keys, values, ids = arguments
            return sink.write_columns(tuple(keys), tuple(values), 1e9, list(ids))
        if hook == "end":
            sink.repeated = False
        if hook == "commit_all":
            epoch, handles = arguments
            return sink.commit_all(epoch, tuple(handles))
        if hook == "forget_staged":
            return sink.forget_staged(tuple(arguments[0])) if forgets_always(sink) else sink.forget_staged()
        return getattr(sink, hook)(*arguments)


class _Life:
    """One run at a place: its driver, and the sub-units that write."""

    def __init__(
        self, checked: _Checked, place: Path, run: str, resumed: bool, kept: Sequence[tuple[int, Any]]
    ) -> None:
        self._checked, self._place, self._run = checked, place, run
        self._numbers = iter(range(100))
        self.driver = checked.process(place)
        self.driver.call("check")
        self.first = self.opened()  # as in the engine: it is open before the run begins
        self.driver.call("begin", run, resumed)
        self.go_back(kept)

    def opened(self) -> KillableProcess:
        sub_unit = self._checked.process(self._place)
        sub_unit.call("open", self._run, next(self._numbers))
        return sub_unit

    def go_back(self, kept: Sequence[tuple[int, Any]]) -> None:
        for epoch, handle in kept:
            self.commit(self.driver, epoch, handle)
        self.driver.call("forget_staged", [handle for _, handle in kept])

    def commit(self, by: KillableProcess, epoch: int, *handles: Any) -> None:
        """Commit what belongs to one checkpoint."""
        if self._checked.as_one:
            self.driver.call("commit_all", epoch, handles)
        else:
            for handle in handles:
                by.call("commit", epoch, handle)

    def end(self, *sub_units: KillableProcess) -> None:
        for each in sub_units or (self.first,):
            each.call("close")
        self.driver.call("end", True)
        self._checked.kill_all()


class _Checked:
    def __init__(
        self,
        make: Callable[[Path], Sink],
        read: Callable[[Path], Iterable[tuple[Any, Any]]],
        rows: _Rows,
        ordered: bool,
        folder: Path,
    ) -> None:
        self._make, self._read, self._rows, self._ordered, self._folder = make, read, rows, ordered, folder
        self._living: list[KillableProcess] = []
        self._places = 0
        self._crashes = 0
        #: the driver commits, for all sub-units
        self.as_one = False

    def process(self, place: Path) -> KillableProcess:
        made = KillableProcess(_Server(lambda: self._make(place), str(place.parent)))
        self._living.append(made)
        return made

    def kill_all(self) -> None:
        while self._living:
            self._living.pop().kill()

    def _crash(self) -> None:
        self._crashes += 1
        self.kill_all()

    def _kill(self, process: KillableProcess) -> None:
        self._crashes += 1
        self._living.remove(process)
        process.kill()

    def check(self, parts: int, commit: bool) -> int:
        half = len(self._rows) // 2
        try:
            self._in_order(half, commit)
            if commit:
                self._by_another(half)
            self._parallel(parts, commit)
            if commit:
                for by_driver in (False, True):
                    self._given_up(half, by_driver)
                for step in _STEPS:
                    self._killed(half, step)
                    self._killed_beside_the_driver(half, step)
                self._not_yet_kept(half)
                self._beside(half)
        finally:
            self.kill_all()
        return self._crashes

    # laws --------------------------------------------------------------------------------------------

    def _in_order(self, half: int, commit: bool) -> None:
        place = self._place("order")
        life = _Life(self, place, "run-1", False, ())
        for epoch, (start, end) in enumerate(((0, half), (half, half), (half, len(self._rows))), 1):
            for at in range(start, end, 3):
                self._write(life.first, at, min(end, at + 3))
            if commit:
                self._seen(place, start, "nothing is seen before prepare")
                handle = life.first.call("prepare", epoch)
                self._seen(place, start, "what is prepared is not seen before its commit")
                life.commit(life.first, epoch, handle)
                self._seen(place, end, "what is committed is seen, and an epoch without rows changes nothing")
            else:
                life.first.call("prepare", epoch)
        if not commit:
            self._crash()
            return self._seen(
                place, len(self._rows), "what was written is durable, where nothing is prepared and committed"
            )
        life.end()
        return self._seen(place, len(self._rows), "close and end change nothing")

    def _parallel(self, parts: int, commit: bool) -> None:
        place, count = self._place("parallel"), len(self._rows)
        life = _Life(self, place, "run-1", False, ())
        writers = [life.first, *(life.opened() for _ in range(parts - 1))]
        # All rows of a key go to one, as behind a bolt.
        shares = {
            key: number % parts for number, key in enumerate(dict.fromkeys(map(repr, (k for k, _ in self._rows))))
        }
        for at, (key, _) in enumerate(self._rows):
            self._write(writers[shares[repr(key)]], at, at + 1)
        handles = [each.call("prepare", 1) for each in writers]
        if commit and self.as_one:
            life.commit(life.driver, 1, *handles)
            life.commit(life.driver, 1, *handles)
        elif commit:
            life.commit(life.driver, 1, *handles[1:])
            life.commit(writers[0], 1, handles[0])
        life.end(*writers)
        self._seen(place, count, f"{parts} sub-units that write at once do not disturb each other")

    def _by_another(self, half: int) -> None:
        place = self._place("another")
        life = _Life(self, place, "run-1", False, ())
        handle = self._prepared(life.first, 0, half, 1)
        self._kill(life.first)
        self._seen(place, 0, "what is prepared is not seen before its commit")
        for committing in (life.driver, life.driver, other := life.opened(), life.opened()):
            life.commit(committing, 1, handle)
            self._seen(
                place,
                half,
                "what was prepared by a process that died is committed by others, and a repeat changes nothing",
            )
        second = self._prepared(other, half, len(self._rows), 2)
        life.commit(other, 2, second)
        life.commit(other, 2, second)
        life.commit(life.driver, 1, handle)
        life.end(other)
        self._seen(place, len(self._rows), "a commit that comes again changes nothing")

    def _killed(self, half: int, step: str) -> None:
        """All processes of a run are killed behind this step of its second epoch, and another run goes on."""
        # A commit comes behind a checkpoint that is kept, and what is prepared may belong to one or not.
        for kept_too in {"prepare": (False, True), "commit": (True,)}.get(step, (False,)):
            place = self._place(f"killed-{step}-{kept_too:d}")
            life = _Life(self, place, "run-1", False, ())
            kept = self._first_epoch(life, half)
            second = self._go_to(life, half, step)
            kept += [(2, second)] if kept_too else []
            self._crash()
            law = f"all are killed behind {step}, and a run with the same lineage goes on"
            self._go_on(_Life(self, place, "run-2", True, kept), place, half, kept_too, law)

    def _killed_beside_the_driver(self, half: int, step: str) -> None:
        """The sub-unit is killed behind this step of its second epoch, and all go back to the first."""
        if step == "commit":  # comes behind a checkpoint: there is no going back
            return
        place = self._place(f"went-back-{step}")
        life = _Life(self, place, "run-1", False, ())
        kept = self._first_epoch(life, half)
        self._go_to(life, half, step)
        self._kill(life.first)
        life.first = life.opened()
        life.go_back(kept)
        self._go_on(life, place, half, False, f"a sub-unit is killed behind {step}, and all go back to the checkpoint")

    def _not_yet_kept(self, half: int) -> None:
        place, law = self._place("leftovers"), "what is left of a run without a checkpoint is never seen"
        life = _Life(self, place, "run-1", False, ())
        self._prepared(life.first, 0, half, 1)
        self._crash()
        life = _Life(self, place, "run-2", False, ())
        self._seen(place, 0, law)
        life.commit(life.first, 1, self._prepared(life.first, 0, len(self._rows), 1))
        life.end()
        self._seen(place, len(self._rows), law)

    def _given_up(self, half: int, by_driver: bool) -> None:
        place = self._place("given-up")
        life = _Life(self, place, "run-1", False, ())
        first = self._prepared(life.first, 0, half, 1)
        second = self._prepared(life.first, half, len(self._rows), 2)
        self._seen(place, 0, "what is prepared is not seen before its commit")
        if by_driver:
            self._kill(life.first)
        if self.as_one:
            life.commit(life.driver, 2, first, second)
        for epoch, handle in ((1, first), (2, second)) if not self.as_one else ():
            life.commit(life.driver if by_driver else life.first, epoch, handle)
        life.end(life.opened() if by_driver else life.first)
        law = "what was prepared for a checkpoint that was given up is committed with the next one"
        self._seen(place, len(self._rows), law)

    def _beside(self, half: int) -> None:
        place, law = (
            self._place("beside"),
            "what is written while a Future of prepare is open belongs to the next epoch",
        )
        life = _Life(self, place, "run-1", False, ())
        self._write(life.first, 0, half)
        handle = life.first.call("prepare_beside", 1, *self._columns(half, len(self._rows)))
        life.commit(life.first, 1, handle)
        self._seen(place, half, law)
        life.commit(life.first, 2, life.first.call("prepare", 2))
        life.end()
        self._seen(place, len(self._rows), law)

    # steps -------------------------------------------------------------------------------------------

    def _first_epoch(self, life: _Life, half: int) -> list[tuple[int, Any]]:
        handle = self._prepared(life.first, 0, half, 1)
        life.commit(life.first, 1, handle)
        return [(1, handle)]

    def _go_to(self, life: _Life, half: int, step: str) -> Any:
        sub_unit = life.first
        if step == "open":
            return None
        self._write(sub_unit, half, len(self._rows))
        if step == "write":
            return None
        handle = sub_unit.call("prepare", 2)
        if step == "commit":
            life.commit(sub_unit, 2, handle)
        return handle

    def _go_on(self, life: _Life, place: Path, half: int, kept_too: bool, law: str) -> None:
        self._seen(place, len(self._rows) if kept_too else half, law)
        if not kept_too:
            life.commit(life.first, 3, self._prepared(life.first, half, len(self._rows), 3))
        life.end()
        self._seen(place, len(self._rows), law)

    def _prepared(self, sub_unit: KillableProcess, start: int, end: int, epoch: int) -> Any:
        self._write(sub_unit, start, end)
        return sub_unit.call("prepare", epoch)

    def _write(self, sub_unit: KillableProcess, start: int, end: int) -> None:
        sub_unit.call("write", *self._columns(start, end))

    def _columns(self, start: int, end: int) -> tuple[Any, Any, list[str]]:
        keys, values = zip(*self._rows[start:end])
        return keys, values, [f"1:{i}" for i in range(start, end)]

    def _place(self, name: str) -> Path:
        self._places += 1
        return self._folder / f"{name}-{self._places}"

    def _seen(self, place: Path, count: int, law: str) -> None:
        reader = KillableProcess(lambda hook, arguments: [tuple(row) for row in self._read(place)])
        self._living.append(reader)
        found = [tuple(row) for row in reader.call("read")]
        self._living.remove(reader)
        reader.kill()
        wanted = self._rows[:count]
        said = f"{law}: {len(found)} rows are seen, {count} expected: {_differing(found, wanted)}"
        assert sorted(map(repr, found)) == sorted(map(repr, wanted)), said
        if self._ordered:
            assert _by_key(found) == _by_key(wanted), (
                f"{law}: the rows of a key come in another order than they were written"
            )


def _by_key(rows: _Rows) -> dict[str, _Rows]:
    found: dict[str, _Rows] = {}
    for row in rows:
        found.setdefault(repr(row[0]), []).append(row)
    return found


def _differing(found: _Rows, wanted: _Rows) -> str:
    """Say which rows are lost, and which are too many."""
    lost, over = list(map(repr, wanted)), []
    for row in map(repr, found):
        if row in lost:
            lost.remove(row)
        else:
            over.append(row)
    parts: Iterator[str] = (f"{what} {rows[:3]}" for what, rows in (("lost", lost), ("too many", over)) if rows)
    return "; ".join(parts) or "the same"
