"""A thread that publishes to streams, and publishes again what was not confirmed when a connection broke."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from esault.connectors.rabbitmq.stream_client import StreamAddress, StreamClient, StreamRefusedError, stream_failure
from esault.connectors.waits import Waits
from esault.errors import SinkError

__all__ = ["StreamPublisher"]

#: messages that wait for their confirmation at most, and bytes of a frame
_WINDOW, _FRAME = 10_000, 256 << 10
#: bytes that a frame, and a message in it, take beside the data
_FRAME_HEAD, _MESSAGE_HEAD = 16, 12
#: seconds without a message after which this side is said to be there
_BEAT_EVERY = 15.0


@dataclass
class _Job:
    """Messages of one stream with the publishing ids `first`, `first + 1`, ..."""

    stream: str
    reference: str
    first: int
    messages: Sequence[bytes]
    done: Future[None] = field(default_factory=Future)


class StreamPublisher:
    """One connection at a time. A server that is away is waited for; it is said once."""

    def __init__(self, who: str, address: StreamAddress, say: Callable[[str], None]) -> None:
        self._who, self._address, self._say = who, address, say
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._client: StreamClient | None = None
        #: (reference, stream) -> number of the publisher in this connection
        self._publishers: dict[tuple[str, str], int] = {}
        self._thread = threading.Thread(target=self._run, name=f"esault {who}", daemon=True)
        self._thread.start()

    def publish(self, stream: str, reference: str, first: int, messages: Sequence[bytes]) -> Future[None]:
        """Return what is done when the server has confirmed all; an error is a SinkError. In the order in which it is asked for."""
        job = _Job(stream, reference, first, messages)
        self._jobs.put(job)
        return job.done

    def close(self) -> None:
        """Disconnect; what is not confirmed is given up."""
        self._closing.set()
        self._jobs.put(None)

    # the thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                job = self._jobs.get(timeout=_BEAT_EVERY)
            except queue.Empty:
                self._beat()
                continue
            if job is None or not job.done.set_running_or_notify_cancel():
                continue
            try:
                self._until_confirmed(job)
            except SinkError as error:
                job.done.set_exception(error)
            except BaseException as error:  # a mistake here: who waits must hear of it
                job.done.set_exception(SinkError(f"{self._who}: {type(error).__name__}: {error}"))
            else:
                job.done.set_result(None)
        self._drop()

    def _beat(self) -> None:
        if self._client is not None:
            try:
                self._client.beat()
            except OSError:  # the next job finds it out, too
                self._drop()

    def _until_confirmed(self, job: _Job) -> None:
        said, waits = False, Waits()
        while True:
            try:
                self._attempt(job)
            except (OSError, StreamRefusedError) as error:
                self._drop()
                failure = stream_failure(SinkError, self._who, self._address, error)
                if isinstance(error, StreamRefusedError):
                    if not error.passes:
                        raise failure from error
                elif not isinstance(failure.__cause__, ConnectionError):
                    raise failure from error
                if self._closing.is_set():
                    raise SinkError(f"{self._who}: was closed before the server had confirmed all") from error
                if not said:
                    said = True
                    self._say(f"waits for the server: {failure}")
                self._closing.wait(waits.next())
            else:
                if said:
                    self._say("goes on: the server answers")
                return

    def _attempt(self, job: _Job) -> None:
        client, number = self._publisher(job)
        frames = deque(self._frames(job, client.frame_max))
        open_ids = set(range(job.first, job.first + len(job.messages)))
        sent = 0
        while open_ids:
            while frames and sent - (len(job.messages) - len(open_ids)) < _WINDOW:
                frame = frames.popleft()
                client.publish(number, frame)
                sent += len(frame)
            for confirmed in client.confirmed():
                if confirmed.publisher != number:
                    continue
                if confirmed.code != 1:
                    raise StreamRefusedError(confirmed.code, f"stream {job.stream!r}")
                open_ids.difference_update(confirmed.ids)

    def _frames(self, job: _Job, most: int) -> Sequence[list[tuple[int, bytes]]]:
        frames: list[list[tuple[int, bytes]]] = []
        size = most
        for id, data in enumerate(job.messages, job.first):
            if _FRAME_HEAD + _MESSAGE_HEAD + len(data) > most:
                raise SinkError(
                    f"{self._who}: a message has {len(data):,} bytes, and a frame of the server {most:,} (stream.frame_max): write smaller "
                    "rows, or raise it"
                )
            size += _MESSAGE_HEAD + len(data)
            if size > min(_FRAME, most):
                frames.append([])
                size = _FRAME_HEAD + _MESSAGE_HEAD + len(data)
            frames[-1].append((id, data))
        return frames

    def _publisher(self, job: _Job) -> tuple[StreamClient, int]:
        if self._client is None:
            self._client = StreamClient(self._address)
        key = (job.reference, job.stream)
        number = self._publishers.get(key)
        if number is None:
            if len(self._publishers) == 255:  # those of handles that others left: a new connection has none
                self._drop()
                return self._publisher(job)
            number = self._publishers[key] = len(self._publishers)
            self._client.declare_publisher(number, job.reference, job.stream)
        return self._client, number

    def _drop(self) -> None:
        client, self._client = self._client, None
        self._publishers.clear()
        if client is not None:
            client.close()
