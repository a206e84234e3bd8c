"""What the data path counts on between processes: real sockets, no run around them."""

from __future__ import annotations

import os
import random
import socket

import pytest

from esault.runtime.net.inlets import Inlet, Inlets, remove_files
from esault.runtime.net.links import HEADER, LONGEST_FRAME, PREFACE, UnixWire, path_of

FRAMES = 60


@pytest.fixture
def inlet(tmp_path):
    made = Inlet(str(tmp_path / "1.data"))
    yield made
    made.close()


@pytest.fixture
def wire():
    made = UnixWire()
    yield made
    made.close()


def _read(inlet, count, wire=None):
    """So many frames; `wire` pushes what waits meanwhile."""
    got = []
    for _ in range(10_000):
        if len(got) >= count:
            break
        inlet.wait(0.1)
        inlet.read(lambda frame: got.append(bytes(frame)))
        if wire is not None:
            wire.retry()
    return got


def test_frames_of_all_sizes_arrive_whole_and_in_order(inlet, wire):
    link = wire.link(inlet.endpoint)
    order = random.Random(1)
    sizes = [
        0,
        1,
        3,
        4,
        5,
        100,
        511 << 10,
        512 << 10,
        (512 << 10) + 1,
        3 << 20,
        *(order.randrange(70_000) for _ in range(300)),
    ]
    frames = [order.randbytes(size) for size in sizes]
    got, waiting = [], list(frames)
    for _ in range(100_000):
        while waiting and link.send(waiting[0]):
            del waiting[0]
        inlet.read(lambda frame: got.append(bytes(frame)))
        wire.retry()
        if len(got) == len(frames):
            break
    assert got == frames


def test_a_large_frame_is_taken_at_once_and_goes_on_by_itself(inlet, wire):
    link = wire.link(inlet.endpoint)
    assert link.send(bytes(20 << 20))
    assert not link.send(b"next")
    assert [len(frame) for frame in _read(inlet, 1, wire)] == [20 << 20]
    assert link.send(b"next")
    assert _read(inlet, 1) == [b"next"]


def test_a_link_of_large_frames_holds_a_whole_one(inlet, wire):
    link = wire.link(inlet.endpoint)
    frame = random.Random(2).randbytes(300 << 10)
    with open("/proc/sys/net/core/wmem_max") as file:
        most = int(file.read())
    room = lambda: link._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    before = room()
    assert link.send(frame)
    assert _read(inlet, 1, wire) == [frame]
    assert room() == max(before, 2 * min(most, len(frame)))
    assert link.send(bytes(8 << 20))
    assert [len(each) for each in _read(inlet, 1, wire)] == [8 << 20]
    assert room() <= 2 << 20


def test_frames_come_byte_by_byte(inlet):
    sent = [b"", b"a", b"bc" * 300]
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(path_of(inlet.endpoint))
        got = []
        for byte in PREFACE + b"".join(HEADER.pack(len(frame)) + frame for frame in sent):
            slow.send(bytes([byte]))
            inlet.read(lambda frame: got.append(bytes(frame)))
    inlet.read(lambda frame: got.append(bytes(frame)))
    assert got == sent


def test_what_was_sent_arrives_though_the_sender_goes_before_it_is_read(inlet, wire):
    link = wire.link(inlet.endpoint)
    taken = 0
    while link.send(bytes([taken]) * 3000):  # nobody reads meanwhile
        taken += 1
    link.close()
    got = _read(inlet, taken)
    # of the last one the operating system may have had only a part
    assert [frame[0] for frame in got] in (list(range(taken)), list(range(taken - 1)))
    assert taken > 20


def test_who_finishes_has_all_of_it_delivered(tmp_path, inlet, wire):
    reader = os.fork()
    if not reader:
        code = 1
        try:
            code = 0 if [len(frame) for frame in _read(inlet, 1)] == [9 << 20] else 2
        finally:
            os._exit(code)
    link = wire.link(inlet.endpoint)
    assert link.send(bytes(9 << 20))
    link.finish()
    assert os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) == 0


def test_a_socket_that_nobody_reads_refuses_what_comes_until_it_is_read(inlet, wire):
    link = wire.link(inlet.endpoint)
    taken = 0
    while link.send(bytes(1000)):
        taken += 1
    assert 0 < taken < 2000
    assert len(_read(inlet, taken, wire)) == taken
    assert link.send(bytes(1000))


def test_a_link_to_nobody_refuses_and_finds_who_comes_later(tmp_path, wire):
    link = wire.link(f"unix:{tmp_path / '7.data'}")
    assert not link.send(b"frame")
    inlet = Inlet(str(tmp_path / "7.data"))
    assert link.send(b"frame")
    assert _read(inlet, 1) == [b"frame"]
    inlet.close()
    assert not link.send(b"frame")
    late = Inlet(str(tmp_path / "7.data"))
    assert not link.send(b"frame")  # what was on its way is lost: a link that broke stays broken
    late.close()


def test_a_sender_that_dies_in_the_middle_of_a_frame_leaves_nothing_of_it(inlet, wire):
    with socket.socket(socket.AF_UNIX) as dying:
        dying.connect(path_of(inlet.endpoint))
        dying.sendall(PREFACE + HEADER.pack(5) + b"whole" + HEADER.pack(1000) + b"half")
    link = wire.link(inlet.endpoint)
    assert link.send(b"another")
    assert sorted(_read(inlet, 2)) == [b"another", b"whole"]


@pytest.mark.parametrize(
    "junk",
    [
        b"\xff" * 100,
        PREFACE[:-1] + b"9" + HEADER.pack(3) + b"abc",
        PREFACE + HEADER.pack(LONGEST_FRAME + 1) + bytes(100),
        random.Random(3).randbytes(5000),
    ],
)
def test_a_stranger_is_hung_up_on_and_nobody_else_notices(inlet, wire, junk):
    link = wire.link(inlet.endpoint)
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(path_of(inlet.endpoint))
        stranger.sendall(junk)
        assert link.send(b"frame")
        assert _read(inlet, 1) == [b"frame"]
        inlet.read(lambda frame: pytest.fail("a frame out of nonsense"))
        stranger.settimeout(1)
        try:
            assert stranger.recv(1) == b""
        except ConnectionResetError:
            pass  # it had not read all of it


def test_data_is_left_alone_while_it_must_wait(tmp_path, wire):
    inlets = Inlets(str(tmp_path), 3)
    data, express = wire.link(inlets.data.endpoint), wire.link(inlets.express.endpoint)
    assert data.send(b"data")
    inlets.wait(0.01, False)  # says nothing of it
    assert express.send(b"express")
    inlets.wait(5, False)
    got = []
    take = lambda frame: got.append(bytes(frame))
    inlets.read(take, False)  # accepts
    assert got == [b"express"]
    inlets.wait(5, True)
    inlets.read(take, False)  # the inbox has become full meanwhile
    assert got == [b"express"]
    inlets.read(take, True)
    assert got == [b"express", b"data"]
    inlets.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seconds", [0.0, 0.01, 5.0])
def test_what_came_is_read_however_long_was_waited_before(tmp_path, wire, seconds):
    inlets, other = Inlets(str(tmp_path), 3), Inlets(str(tmp_path), 4)
    inlets.watch(other.express.fileno())
    data, express = wire.link(inlets.data.endpoint), wire.link(inlets.express.endpoint)
    got = []
    take = lambda frame: got.append(bytes(frame))
    inlets.read(take, True)  # accepts
    for number, quiet in enumerate((0.001, 0.03)):
        assert not inlets.wait(quiet, True)  # which finds nothing, and says nothing of what comes now
        assert data.send(b"data%d" % number) and express.send(b"express%d" % number)
        assert not inlets.read(take, True) & {other.express.fileno()}
        assert got[-2:] == [b"data%d" % number, b"express%d" % number]
    assert data.send(b"last")
    assert wire.link(other.express.endpoint).send(b"not for this one")
    assert inlets.wait(seconds, True)
    assert inlets.read(take, True) & {other.express.fileno()}
    assert got[-1] == b"last"
    inlets.close()
    other.close()


def test_the_files_of_one_that_was_killed_can_be_removed(tmp_path):
    killed, other = Inlets(str(tmp_path), 7), Inlets(str(tmp_path), 77)
    remove_files(str(tmp_path), 7)
    remove_files(str(tmp_path), 8)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["77.data", "77.express"]
    killed.close()
    other.close()


def test_a_socket_file_that_was_removed_is_made_again_and_callers_find_it(inlet, wire):
    before = wire.link(inlet.endpoint)
    assert before.send(b"connected")
    assert _read(inlet, 1) == [b"connected"]
    assert not inlet.mend()
    os.unlink(path_of(inlet.endpoint))
    late = wire.link(inlet.endpoint)
    assert not late.send(b"nobody is there")
    assert inlet.mend()
    assert late.send(b"called again")
    assert before.send(b"went on")
    assert sorted(_read(inlet, 2)) == [b"called again", b"went on"]


def test_what_was_sent_to_a_socket_before_its_file_was_removed_is_read_whoever_had_been_accepted(inlet, wire):
    early = wire.link(inlet.endpoint)
    assert early.send(b"not accepted yet")
    os.unlink(path_of(inlet.endpoint))
    assert inlet.mend()
    assert _read(inlet, 1) == [b"not accepted yet"]
    assert early.send(b"went on")
    assert _read(inlet, 1) == [b"went on"]


def test_a_socket_whose_folder_was_removed_is_made_again_when_the_folder_is(tmp_path, wire):
    folder = tmp_path / "run"
    folder.mkdir()
    inlet = Inlet(str(folder / "1.data"))
    os.unlink(path_of(inlet.endpoint))
    folder.rmdir()
    assert not inlet.mend()
    folder.mkdir()
    assert inlet.mend()
    assert wire.link(inlet.endpoint).send(b"here")
    assert _read(inlet, 1) == [b"here"]
    inlet.close()
