"""Numbers into a Delta table, by processes that end where a test says so: sub-units, the driver, and the one that commits."""

from __future__ import annotations

import os
import signal

import psutil
from one_commit import Numbers, Same, die_at

from esault import Topology, by_key
from esault.sinks import DeltaSink
from esault.sinks.delta import committer

#: the process that commits has steps of its own
_START = """
sys.path.append({folder!r})
import to_delta; to_delta.with_deaths({path!r})
"""


def with_deaths(path):
    """In the process that commits: it, and the driver where the name says so, end behind a step."""
    from esault.sinks.delta.commits import DeltaCommits

    def dying(hook, step):
        plain = getattr(DeltaCommits, hook)

        def called(self, *arguments):
            result = plain(self, *arguments)
            if self.__dict__.get("committing"):
                if os.path.exists(f"{path}.die-{step}-driver"):
                    os.kill(os.getppid(), signal.SIGKILL)
                    die_at(path, f"{step}-driver")
                die_at(path, step)
            return result

        setattr(DeltaCommits, hook, called)

    dying("_place", "placed")
    dying("_append", "entered")
    dying("_merge", "entered")
    plain = DeltaCommits.commit

    def commit(self, **request):
        self.committing = True
        return plain(self, **request)

    DeltaCommits.commit = commit


def committing(path):
    """The processes that commit to this table."""
    return [p for p in psutil.process_iter() if f"esault commits to {path}" in " ".join(psutil_cmdline(p))]


def psutil_cmdline(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class Dying(DeltaSink):
    """Ends its process behind a step."""

    def begin(self, run):
        start = _START.format(folder=os.path.dirname(__file__), path=self.path)
        if start not in committer._START:
            committer._START = f"import sys; argv = sys.argv[:]{start}\n{committer._START}"
        super().begin(run)

    def prepare(self, epoch):
        handle = super().prepare(epoch)
        if handle:
            die_at(self.path, "prepare")
        return handle

    def commit_all(self, epoch, handles):
        if any(handles):
            die_at(self.path, "before")
        super().commit_all(epoch, handles)
        if any(handles):
            die_at(self.path, "commit")


def topology(out: str, n: int = 100_000, merged: bool = False, name: str = "to_delta") -> Topology:
    t = Topology(name)
    columns = {"key": int, "value": int}
    sink = (
        Dying(out, columns, "append", primary_key="value")
        if merged
        else Dying(out, columns, "append", partition_by="key")
    )
    same = t.spout("numbers", Numbers(int(n), f"{out}.gate")).bolt("same", Same, by_key(), parallelism=2)
    same.sink("out", sink)
    return t
