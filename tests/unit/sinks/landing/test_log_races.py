"""The commit log: on a disk in memory, writers that stop between any two operations, crashes, power cuts."""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from esault.sinks.landing import state as state_module
from esault.sinks.landing.entry import Entry, Part, Txn
from esault.sinks.landing.log import CommitLog, Conflict
from esault.sinks.landing.schema import Column
from esault.sinks.landing.vacuum import vacuum

SCHEMA = (Column("word", "string"), Column("total", "long"))
TABLE = "/t"


def rows(log: CommitLog, app: str, epoch: int) -> int | None:
    return log.append(Entry("rows", txn=Txn(app, epoch), add=(Part(f"{app}-{epoch}", 1, 1),)))


class MemoryDisk:
    """Files in memory. `power_cut` keeps what was synced and a prefix of the operations on names since then."""

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self.now = now
        self.files: dict[str, tuple[bytes, float]] = {}
        self.durable: dict[str, tuple[bytes, float]] = {}
        self.journal: list[tuple[str, tuple[bytes, float] | None]] = []

    def _set(self, path: str, value: tuple[bytes, float] | None) -> None:
        self._put(self.files, path, value)
        self.journal.append((path, value))

    @staticmethod
    def _put(files: dict[str, tuple[bytes, float]], path: str, value: tuple[bytes, float] | None) -> None:
        if value is None:
            files.pop(path, None)
        else:
            files[path] = value

    def _get(self, path: str) -> tuple[bytes, float]:
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return self.files[path]

    def read(self, path: str) -> bytes:
        return self._get(path)[0]

    def names(self, folder: str) -> list[str]:
        return [os.path.basename(path) for path in self.files if os.path.dirname(path) == folder]

    def write_new(self, path: str, data: bytes | memoryview) -> None:
        assert path not in self.files
        self._set(path, (bytes(data), self.now()))

    def link(self, source: str, target: str) -> bool:
        content = self._get(source)
        if target in self.files:
            return False
        self._set(target, content)
        return True

    def rename(self, source: str, target: str) -> None:
        content = self._get(source)
        self._set(target, content)
        self._set(source, None)

    def remove(self, path: str) -> None:
        if path in self.files:
            self._set(path, None)

    def sync_folder(self, folder: str) -> None:
        self.durable = dict(self.files)
        self.journal = []

    def make_folder(self, folder: str) -> None:
        pass

    def modified(self, path: str) -> float:
        return self._get(path)[1]

    def touch(self, path: str) -> None:
        self._set(path, (self._get(path)[0], self.now()))

    def power_cut(self, kept: int) -> None:
        files = dict(self.durable)
        for path, value in self.journal[:kept]:
            self._put(files, path, value)
        self.files, self.durable, self.journal = files, dict(files), []


class Killed(BaseException):
    """The process is dead: it does nothing more, not even clean up."""


class Actor:
    """Code that stops before each operation on the disk until it is told to go on; one thread runs at a time."""

    def __init__(self, disk: MemoryDisk, work: Callable[[Any], Any]) -> None:
        self.disk = disk
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._dead = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()
        self._stopped.acquire()

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.disk, name)

        def stopping(*arguments: Any) -> Any:
            self._stopped.release()
            self._go.acquire()
            if self._dead:
                raise Killed
            return operation(*arguments)

        return stopping

    def _run(self, work: Callable[[Any], Any]) -> None:
        try:
            self.result = work(self)
        except BaseException as error:
            self.error = error
        self.done = True
        self._stopped.release()

    def step(self) -> None:
        self._go.release()
        self._stopped.acquire()

    def finish(self) -> Any:
        while not self.done:
            self.step()
        if self.error is not None:
            raise self.error
        return self.result

    def kill(self) -> None:
        self._dead = True
        while not self.done:
            self.step()
        self._thread.join()


class Appenders(RuleBasedStateMachine):
    """Writers, a compaction, readers and vacuum, step by step. What was acknowledged is visible, once, for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 1000.0
        self.disk = MemoryDisk(lambda: self.time)
        self.actors: list[tuple[str, Any, Actor]] = []
        self.logs: dict[int, CommitLog] = {}
        self.epochs: Counter[int] = Counter()
        self.others = 0
        #: part -> the epochs whose rows it holds
        self.content: dict[str, frozenset[Txn]] = {}
        self.tried: list[Txn] = []
        self.acknowledged: set[Txn] = set()
        self.seen: set[Txn] = set()
        self.every, state_module.SNAPSHOT_EVERY = state_module.SNAPSHOT_EVERY, 3
        CommitLog(TABLE, self.disk, now=self.clock).append(Entry("create", schema=SCHEMA, run="r"))
        for writer in (0, 0, 1, 1):
            self.a_writer_commits(writer)
            self.run_all()

    def clock(self) -> float:
        return self.time

    def teardown(self) -> None:
        for _, _, actor in self.actors:
            actor.kill()
        state_module.SNAPSHOT_EVERY = self.every

    def start(self, kind: str, about: Any, work: Callable[[Any], Any]) -> None:
        if len(self.actors) < 4:
            self.actors.append((kind, about, Actor(self.disk, work)))

    def visible(self) -> Counter[Txn]:
        files = CommitLog(TABLE, self.disk, now=self.clock).files()
        return Counter(txn for part in files for txn in self.content[part.path])

    @rule(writer=st.integers(0, 2))
    def a_writer_commits(self, writer: int) -> None:
        """A sub-unit keeps its log from commit to commit, as a sink does; one commit at a time."""
        if any(kind == "commit" and about[0] == writer for kind, about, _ in self.actors):
            return
        txn = Txn(f"r/u/{writer}", self.epochs[writer])
        self.epochs[writer] += 1
        self.tried.append(txn)
        self.commit(writer, txn, Part(f"p{writer}-{txn.epoch}", 1, 1))

    @precondition(lambda self: self.tried)
    @rule(data=st.data(), anew=st.booleans())
    def another_process_commits_it_again(self, data: st.DataObject, anew: bool) -> None:
        """With the handle of the first, or, as an engine that repeats an epoch does, with a part of its own."""
        self.others += 1
        txn = data.draw(st.sampled_from(self.tried))
        name = f"o{self.others}" if anew else f"p{txn.app[-1]}-{txn.epoch}"
        self.commit(100 + self.others, txn, Part(name, 1, 1))

    def commit(self, writer: int, txn: Txn, part: Part) -> None:
        self.content[part.path] = frozenset({txn})

        def work(disk: Any) -> None:
            log = self.logs.setdefault(writer, CommitLog(TABLE, keep_files=False, now=self.clock))
            log._disk = disk
            log.append(Entry("rows", run="r", txn=txn, add=(part,)))

        self.start("commit", (writer, txn), work)

    @rule()
    def a_compaction_starts(self) -> None:
        name = f"c{len(self.content)}"
        self.content[name] = frozenset()

        def work(disk: Any) -> None:
            log = CommitLog(TABLE, disk, now=self.clock)
            old = [part.path for part in log.files()[:3]]
            if len(old) > 1:
                self.content[name] = frozenset().union(*(self.content[path] for path in old))
                log.append(Entry("compact", add=(Part(name, len(old), 1),), remove=tuple(old)))

        self.start("compact", None, work)

    @rule()
    def a_reader_starts(self) -> None:
        known = set(self.acknowledged)
        self.start("read", known, lambda disk: CommitLog(TABLE, disk, now=self.clock).files())

    @rule()
    def a_vacuum_starts(self) -> None:
        self.start("vacuum", None, lambda disk: vacuum(TABLE, 400.0, disk=disk, now=self.clock))

    @precondition(lambda self: self.actors)
    @rule(data=st.data(), steps=st.integers(1, 6))
    def one_goes_on(self, data: st.DataObject, steps: int) -> None:
        kind, about, actor = data.draw(st.sampled_from(self.actors))
        for _ in range(steps):
            if not actor.done:
                actor.step()
        if actor.done:
            self.ended(kind, about, actor)

    @rule()
    def run_all(self) -> None:
        for kind, about, actor in self.actors:
            while not actor.done:
                actor.step()
            self.ended(kind, about, actor)

    def ended(self, kind: str, about: Any, actor: Actor) -> None:
        self.actors = [one for one in self.actors if one[2] is not actor]
        if kind == "compact" and isinstance(actor.error, Conflict):
            return
        assert actor.error is None, actor.error
        if kind == "commit":
            self.acknowledged.add(about[1])
        if kind == "read":
            rows = {txn for part in actor.result for txn in self.content[part.path]}
            assert about <= rows

    @precondition(lambda self: self.actors)
    @rule(data=st.data())
    def one_is_killed(self, data: st.DataObject) -> None:
        kind, about, actor = data.draw(st.sampled_from(self.actors))
        actor.kill()
        self.actors = [one for one in self.actors if one[2] is not actor]
        if kind == "commit":
            self.logs.pop(about[0], None)

    @rule(kept=st.integers(0, 20))
    def the_power_goes(self, kept: int) -> None:
        for _, _, actor in self.actors:
            actor.kill()
        self.actors, self.logs = [], {}
        self.disk.power_cut(kept)
        self.seen = set(self.visible())

    @precondition(lambda self: not self.actors)
    @rule()
    def time_passes(self) -> None:
        self.time += 1000.0

    @invariant()
    def visible_is_what_was_committed_once(self) -> None:
        visible = self.visible()
        assert set(visible.values()) <= {1}, "rows are there twice"
        assert self.acknowledged <= set(visible), "acknowledged rows are gone"
        assert set(visible) <= set(self.tried)
        assert self.seen <= set(visible), "rows were visible and are no more"
        self.seen = set(visible)


Appenders.TestCase.settings = settings(
    max_examples=120, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
test_whatever_writers_do_and_whoever_dies_each_committed_row_is_visible_once = pytest.mark.slow(Appenders.TestCase)


def test_an_epoch_is_acknowledged_only_when_its_entry_is_durable() -> None:
    disk = MemoryDisk()
    log = CommitLog(TABLE, disk)
    log.append(Entry("create", schema=SCHEMA))
    dying = Actor(disk, lambda d: rows(CommitLog(TABLE, d), "a", 0))
    while log.entry_path(1) not in disk.files:
        dying.step()
    dying.kill()  # after the link, before the folder was synced
    assert rows(CommitLog(TABLE, disk), "a", 0) is None
    disk.power_cut(0)
    assert [part.path for part in CommitLog(TABLE, disk).files()] == ["a-0"]


def test_a_writer_that_slept_while_the_log_was_pruned_does_not_write_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_module, "SNAPSHOT_EVERY", 4)
    now = [0.0]
    disk = MemoryDisk(lambda: now[0])
    log = CommitLog(TABLE, disk, now=lambda: now[0])
    log.append(Entry("create", schema=SCHEMA))
    rows(log, "a", 0)
    sleeper = Actor(disk, lambda d: rows(CommitLog(TABLE, d, now=lambda: now[0]), "s", 0))
    while not any(name.endswith(".tmp") for name in disk.names(log.folder)):
        sleeper.step()  # it has read the log, and is about to take number 2
    for epoch in range(1, 12):
        rows(log, "a", epoch)
    now[0] = 8 * 86400.0
    assert vacuum(TABLE, disk=disk, now=lambda: now[0]).entries > 2
    assert log.entry_path(2) not in disk.files
    assert sleeper.finish() == 13
    assert log.entry_path(2) not in disk.files
    assert [part.path for part in CommitLog(TABLE, disk).files()][-1] == "s-0"
