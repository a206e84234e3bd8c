"""Reports through a pipe that many write to, and their places among messages that come another way."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.messages.status import Status, SubUnitCounts
from esault.runtime.actors.signature import Signer
from esault.runtime.messages import Messages
from esault.runtime.net.status_pipe import Report, ReportOrder, StatusReader, StatusWriter
from esault.runtime.worker.data_loop import DataLoop
from esault.runtime.worker.supervisor import Supervisor

SIGNER = Signer(b"a secret of a run")


@pytest.fixture
def reader(tmp_path):
    made = StatusReader(str(tmp_path), SIGNER.loads)
    yield made
    made.close()


@pytest.fixture
def writer(reader, tmp_path):
    made = StatusWriter(str(tmp_path), SIGNER.dumps)
    yield made
    made.close()


def test_what_is_written_is_read_once(reader, writer):
    assert reader.read() == []
    reports = [Report(7, n, Status(3, float(n), SubUnitCounts(tuples_in=n))) for n in range(100)]
    assert all(writer.send(report) for report in reports)
    assert reader.read() == reports
    assert reader.read() == []


def test_reports_of_many_writers_come_whole(reader, tmp_path):
    found = defaultdict(list)

    def write(process):
        own = StatusWriter(str(tmp_path), SIGNER.dumps)
        n = 0
        while n < 200:
            n += own.send(Report(process, n, "x" * (process * 211 % 3900)))
        own.close()

    threads = [threading.Thread(target=write, args=(process,)) for process in range(1, 9)]
    for thread in threads:
        thread.start()
    while sum(map(len, found.values())) < 8 * 200:
        for process, n, text in reader.read():
            assert text == "x" * (process * 211 % 3900)
            found[process].append(n)
    for thread in threads:
        thread.join()
    assert all(found[process] == list(range(200)) for process in range(1, 9))


def test_what_is_too_long_or_finds_no_room_or_no_reader_is_for_another_way(tmp_path):
    reader = StatusReader(str(tmp_path), SIGNER.loads)
    writer = StatusWriter(str(tmp_path), SIGNER.dumps)
    assert not writer.send(Report(7, 0, os.urandom(4096)))
    sent = 0
    while writer.send(Report(7, sent, "x" * 3000)):
        sent += 1
    assert [report.behind for report in reader.read()] == list(range(sent))
    assert writer.send(Report(7, sent, "")) and len(reader.read()) == 1
    reader.close()
    assert not writer.send(Report(7, 0, "")) and not writer.send(Report(7, 0, ""))
    assert not StatusWriter(str(tmp_path / "none"), SIGNER.dumps).send(Report(7, 0, ""))


def test_a_pipe_whose_file_was_removed_is_made_again_and_those_who_had_it_are_heard(reader, writer, tmp_path):
    (tmp_path / "status").unlink()
    reader.mend()
    reader.mend()
    newcomer = StatusWriter(str(tmp_path), SIGNER.dumps)
    assert writer.send(Report(7, 0, "old")) and newcomer.send(Report(8, 0, "new"))
    assert [report.status for report in reader.read()] == ["old", "new"]
    newcomer.close()


def test_a_pipe_whose_folder_was_removed_is_looked_for_again(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    reader = StatusReader(str(folder), SIGNER.loads)
    (folder / "status").unlink()
    folder.rmdir()
    reader.mend()
    folder.mkdir()
    reader.mend()
    writer = StatusWriter(str(folder), SIGNER.dumps)
    assert writer.send(Report(7, 0, "here")) and reader.read() == [Report(7, 0, "here")]
    writer.close()
    reader.close()


@pytest.mark.parametrize("garbage", [b"\xff\xff\xff\xff", b"\x03\x00\x00\x00abc", b"\x40\x00\x00\x00" + bytes(64)])
def test_what_no_process_of_this_run_has_written_is_dropped(reader, writer, tmp_path, garbage):
    strange = os.open(tmp_path / "status", os.O_WRONLY)
    assert writer.send(Report(7, 0, "before"))
    os.write(strange, garbage)
    assert [report.status for report in reader.read()] == ["before"]
    assert writer.send(Report(7, 1, "after"))
    assert [report.status for report in reader.read()] == ["after"]
    other = StatusWriter(str(tmp_path), Signer(b"of another run...").dumps)
    assert other.send(Report(8, 0, "no"))
    assert reader.read() == []
    other.close()
    os.close(strange)


#: of a process: "m" a message to the driver, "r" a report
WORDS = st.lists(st.sampled_from("mr"), max_size=20)


@given(st.lists(WORDS, min_size=1, max_size=3), st.data())
def test_a_report_is_heard_where_it_was_written_or_not_at_all(words, data):
    """Messages take their time, and come in bundles; reports are there at once, and are looked for now and then."""
    order, heard = ReportOrder(), defaultdict(list)
    pipe: list[Report] = []
    under_way: dict[int, list[int]] = {process: [] for process in range(len(words))}
    counts, left = dict.fromkeys(under_way, 0), {process: list(each) for process, each in enumerate(words)}

    def look():
        for process, behind in order.due(pipe):
            heard[process].append(("r", behind))
        pipe.clear()

    while any(left.values()) or any(under_way.values()):
        process = data.draw(st.sampled_from(sorted(left)))
        step = data.draw(st.sampled_from(["say", "look", "arrive"]))
        if step == "say" and left[process]:
            if left[process].pop(0) == "m":
                counts[process] += 1
                under_way[process].append(counts[process])
            else:
                pipe.append(Report(process, counts[process], (process, counts[process])))
        elif step == "look":
            look()
        elif step == "arrive" and under_way[process]:
            look()
            for _ in range(data.draw(st.integers(1, len(under_way[process])))):
                number = under_way[process].pop(0)
                heard[process].append(("m", number))
                heard[process] += [("r", behind) for _, behind in order.counted(process, number)]
    look()
    for process, said in heard.items():
        last = 0
        for kind, number in said:
            assert number == (last + 1 if kind == "m" else last)
            last = number
        # Each bundle is looked behind before its messages are heard: no report is left out.
        assert sum(kind == "r" for kind, _ in said) == words[process].count("r")


def test_nothing_is_kept_of_a_process_that_is_gone():
    order = ReportOrder()
    assert order.counted(7, 1) == []
    assert order.due([Report(7, 1, "now"), Report(7, 2, "early")]) == ["now"]
    order.forget(7)
    assert order.due([Report(7, 0, "another of that number")]) == ["another of that number"]
    assert order.counted(7, 2) == []


class Hearing(Supervisor):
    def engine_failed(self, text):
        raise AssertionError(text)


def test_a_sub_unit_reports_through_the_pipe_and_says_the_rest_to_its_actor(tmp_path, monkeypatch):
    monkeypatch.setattr("esault.runtime.worker.supervisor.signer", lambda: SIGNER)
    supervisor = Hearing()
    supervisor.take_reports(str(tmp_path))
    woken = []
    loop = DataLoop(SimpleNamespace(clock_offset=0.0), SimpleNamespace(), lambda: woken.append(len(loop.outbox)))
    loop.statuses = StatusWriter(str(tmp_path), SIGNER.dumps)
    first, second, third, large = (Status(3, float(n), SubUnitCounts()) for n in range(4))
    large = Status(3, 3.0, SubUnitCounts(), position=os.urandom(5000))
    loop.say(first)
    assert not woken and supervisor.reports() == [first]
    loop.say("built", second, "ready", third, large)
    assert woken == [3] and list(loop.outbox) == ["built", "ready", large]
    assert supervisor.reports() == []  # their messages have not come
    message = Messages(tuple(loop.outbox), os.getpid(), 3)
    assert list(supervisor.in_order(message)) == ["built", second, "ready", third, large]
    supervisor.waker.close()


def test_where_no_pipe_can_be_made_all_goes_as_messages(tmp_path, monkeypatch):
    monkeypatch.setattr("esault.runtime.worker.supervisor.signer", lambda: SIGNER)
    supervisor = Hearing()
    supervisor.take_reports(str(tmp_path / "none"))
    assert supervisor.reports() == []
    loop = DataLoop(SimpleNamespace(clock_offset=0.0), SimpleNamespace(), lambda: None)
    status = Status(3, 1.0, SubUnitCounts())
    loop.say(status)
    assert list(loop.outbox) == [status]
    assert list(supervisor.in_order(Messages((status,), os.getpid(), 1))) == [status]
    supervisor.waker.close()
