"""What the process that commits does to a table, in this one, stopped between any two steps."""

from __future__ import annotations

import os
from datetime import date

import delta_log
import pytest

from esault.errors import SinkError
from esault.sinks import DeltaSink
from esault.topology.context import Context
from esault.topology.sink import RunInfo

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'esault[delta]'")
WORDS = {"word": str, "n": int}


def begun(sink, run="run", resumed=False):
    sink.check()
    sink.begin(RunInfo(run, "topology", "sink", resumed, "lineage"))
    sink.context = Context("sink", run=run, lineage="lineage")
    sink.open(sink.context)
    return sink


def prepared(sink, epoch, *rows):
    sink.write_columns([key for key, _ in rows], [value for _, value in rows], 1.0, None)
    return sink.prepare(epoch)


class StoppedError(Exception):
    """The process was killed there."""


@pytest.mark.parametrize("merged", [False, True])
def test_killed_between_any_two_calls_of_the_system_and_done_again(tmp_path, monkeypatch, merged):
    """Each file operation of a commit is the last one of its process, once; the next process does all of it again."""
    plain = {name: getattr(os, name) for name in ("rename", "makedirs", "fsync", "unlink")}
    columns = {"key": int, "day": date, "n": int}
    for last in range(40):
        path = tmp_path / str(last)
        options = {"primary_key": "key"} if merged else {"partition_by": "day"}
        sink = begun(DeltaSink(path, columns, **options))
        handles = [prepared(sink, epoch, (epoch, (date(2026, 1, epoch), epoch))) for epoch in (1, 2)]
        left = [last]

        def counted(name, left=left):
            def call(*arguments, **named):
                if left[0] == 0:
                    raise StoppedError
                left[0] -= 1
                return plain[name](*arguments, **named)

            return call

        with monkeypatch.context() as patch:
            for name in plain:
                patch.setattr(os, name, counted(name))
            try:
                sink.commit_all(2, handles)
                stopped = False
            except StoppedError:
                stopped = True
        again = begun(DeltaSink(path, columns, **options), "run-2", resumed=True)
        again.commit_all(2, handles)
        again.forget_staged(handles)
        again.end(True)
        assert sorted(delta_log.rows(path, "n")) == [(1,), (2,)], last
        assert not list(path.glob("_esault_staged"))
        if not stopped:
            break
    assert not stopped
    assert last > 4


def test_a_key_of_two_sub_units_has_the_row_that_was_written_last(tmp_path):
    sink = begun(DeltaSink(tmp_path, WORDS, primary_key="word"))
    first = prepared(sink, 1, ("a", 1), ("b", 1))
    second = prepared(sink, 1, ("a", 2), ("b", None))
    sink.commit_all(1, [second, first])
    assert delta_log.rows(tmp_path, "word", "n") == [("a", 2)]
    sink.end(True)


def test_a_key_that_is_a_tuple_is_the_primary_key_of_several_columns(tmp_path):
    columns = {"word": str, "day": int, "n": int}
    sink = begun(DeltaSink(tmp_path, columns, primary_key=("word", "day")))
    sink.commit_all(1, [prepared(sink, 1, (("a", 1), 1), (("a", 2), 1), (("b", 1), 1))])
    sink.commit_all(2, [prepared(sink, 2, (("a", 2), 5), (("b", 1), None))])
    assert sorted(delta_log.rows(tmp_path, "word", "day", "n")) == [("a", 1, 1), ("a", 2, 5)]
    sink.end(True)


def test_a_merge_that_another_writer_overtakes_is_done_anew(tmp_path, monkeypatch, here):
    one, two = (begun(DeltaSink(tmp_path, WORDS, "append", primary_key="word"), run) for run in ("one", "two"))
    handles = [prepared(one, 1, ("a", 1)), prepared(two, 1, ("a", 2), ("b", 2))]
    commits = one._committer.commits
    plain = commits._merge

    def slower(*arguments):
        monkeypatch.undo()
        two._committer = here(two.path)
        two.commit_all(1, handles[1:])
        plain(*arguments)

    monkeypatch.setattr(commits, "_merge", slower)
    one.commit_all(1, handles[:1])
    assert sorted(delta_log.rows(tmp_path, "word", "n")) == [("a", 1), ("b", 2)]


def test_a_table_that_was_replaced_meanwhile_gets_no_rows(tmp_path):
    sink = begun(DeltaSink(tmp_path, WORDS))
    handle = prepared(sink, 1, ("a", 1))
    begun(DeltaSink(tmp_path, {"x": str, "y": int}, "replace"), "other")
    with pytest.raises(SinkError, match="other columns or partitions than when this run began: word, n"):
        sink.commit_all(1, [handle])


def test_an_old_library_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(deltalake, "__version__", "1.5.1")
    with pytest.raises(ImportError, match="keeps no transactions"):
        begun(DeltaSink(tmp_path, WORDS))


def test_long_epochs_are_staged_in_several_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("esault.sinks.landing.staging._SPILL", 1)
    sink = begun(DeltaSink(tmp_path, WORDS))
    for epoch in range(3):
        sink.write_columns([f"k{n}" for n in range(40_000)], [epoch] * 40_000, 1.0, None)
    handle = sink.prepare(1)
    assert [part["rows"] for part in handle["parts"]] == [40_000] * 3
    sink.commit_all(1, [handle, None])
    assert len(delta_log.rows(tmp_path, "n")) == 120_000
    assert sink.prepare(2) is None
    sink.commit_all(2, [None])
    sink.end(True)


def test_what_goes_wrong_is_answered(tmp_path):
    from esault.sinks.delta.commit_process import _answer
    from esault.sinks.delta.commits import DeltaCommits

    commits = DeltaCommits(str(tmp_path))
    assert _answer(commits, {"do": "look"}) == {"result": None}
    gone = _answer(
        commits, {"do": "commit", "epoch": 1, "handles": [], "columns": [], "partition_by": [], "primary_key": []}
    )
    assert "is gone, while it is written" in gone["error"]
    assert "Traceback" in _answer(commits, {"do": "look", "unknown": 1})["error"]

    def full():
        raise OSError("Generic LocalFileSystem error: No space left on device (os error 28)")

    commits.look = full
    assert _answer(commits, {"do": "look"})["errno"] == 28
