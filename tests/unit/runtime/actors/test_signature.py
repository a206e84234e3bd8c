"""Only what was signed with the run's secret is read; everything else is given up at the first byte that shows it."""

from __future__ import annotations

import pickle

import pytest

from esault.runtime.actors import signature
from esault.runtime.actors.signature import MAX_FRAME, Refusals, SignedBuffer, Signer

SECRET = b"the secret of this run, 32 bytes"


class Trap:
    """Unpickling it is the failure."""

    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a frame was unpickled that is not of this run",))


def frame(body: bytes) -> bytes:
    return b"%d>%b" % (len(body), body)


def read(data: bytes, chunk: int = 4096) -> tuple[SignedBuffer, Refusals]:
    refusals = Refusals()
    buffer = SignedBuffer(Signer(SECRET), refusals)
    for start in range(0, len(data), chunk):
        buffer.addMore(data[start : start + chunk])
    return buffer, refusals


@pytest.mark.parametrize("chunk", [1, 7, 20, 4096])
def test_a_signed_frame_is_read_however_it_is_cut(chunk: int) -> None:
    message = ("address", {"key": [1, 2.5, b"x" * 100]})
    buffer, refusals = read(frame(Signer(SECRET).dumps(message)), chunk)
    assert buffer.isDone() and not buffer.refused
    assert buffer.completed() == (message, b"")
    assert refusals.count == 0


def test_the_first_read_never_takes_bytes_of_the_next_frame() -> None:
    assert SignedBuffer(Signer(SECRET), Refusals()).remainingAmount() < len(frame(Signer(SECRET).dumps(None)))


def test_an_incomplete_frame_is_not_done() -> None:
    data = frame(Signer(SECRET).dumps("message"))
    buffer, _ = read(data[:-1])
    assert not buffer.isDone() and buffer.completed() is None and buffer.remainingAmount() == 1


@pytest.mark.parametrize(
    "data",
    [
        frame(pickle.dumps(Trap())),
        frame(b"\0" * 48 + pickle.dumps(Trap())),
        frame(Signer(b"the secret of quite another run.").dumps(Trap())),
        b"-5>",
        b"0>",
        b">",
        b"48>" + b"x" * 48,
        b"%d>x" % (MAX_FRAME + 1),
        b"9" * 5000,
        b" 99>",
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(range(256)),
    ],
    ids=lambda data: repr(data[:12]),
)
def test_a_frame_that_is_not_of_this_run_is_refused_and_never_unpickled(data: bytes) -> None:
    buffer, refusals = read(data)
    assert buffer.refused and buffer.isDone() and buffer.completed() is None
    assert refusals.count == 1


def test_a_changed_byte_is_found_before_anything_is_unpickled() -> None:
    data = bytearray(frame(Signer(SECRET).dumps("message")))
    data[-2] ^= 1
    buffer, _ = read(bytes(data))
    assert buffer.refused


def test_a_large_length_that_is_not_signed_is_refused_before_its_bytes_are_kept() -> None:
    buffer, _ = read(b"%d>" % (MAX_FRAME - 1) + b"\0" * signature._HEAD)
    assert buffer.refused and not buffer._data


def test_a_signed_length_does_not_make_another_pickle_good() -> None:
    body = bytearray(Signer(SECRET).dumps(b"x" * len(pickle.dumps(Trap()))))
    trap = pickle.dumps(Trap())
    body[-len(trap) :] = trap
    buffer, _ = read(frame(bytes(body)))
    assert buffer.refused


def test_the_serializer_refuses_before_it_unpickles() -> None:
    with pytest.raises(PermissionError, match="not signed with this run's secret"):
        Signer(SECRET).loads(Signer(b"the secret of quite another run.").dumps(Trap()))
    assert Signer(SECRET).loads(Signer(SECRET).dumps([1])) == [1]


def test_a_message_that_is_too_large_is_an_error_of_its_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signature, "MAX_FRAME", 1000)
    with pytest.raises(ValueError, match="1,000 is the most that may be sent"):
        Signer(SECRET).dumps(b"x" * 1000)


def test_refusals_are_counted_and_logged_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    with caplog.at_level("WARNING"):
        for _ in range(500):
            refusals.note("an impossible length")
    assert refusals.count == 500
    assert [record.getMessage() for record in caplog.records] == [
        "refused 1 connection to the actor system that came from outside this run; the last: an impossible length"
    ]
