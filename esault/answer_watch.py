"""Says that a server takes long to answer: one that stands still keeps its connections, and no error tells."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator

__all__ = ["SILENT_AFTER", "AnswerWatch", "Question"]

#: seconds without an answer after which that is said
SILENT_AFTER = 10.0


class Question:
    """One that is open since a time; that its answer is waited for is said once."""

    def __init__(self, since: float, silent: Callable[[float], None]) -> None:
        self.since, self.silent = since, silent
        self._lock, self._said = threading.Lock(), False

    def first(self) -> bool:
        """Return whether it was not said yet; it counts as said from now on."""
        with self._lock:
            said, self._said = self._said, True
            return not said


class AnswerWatch:
    """Looks at the questions of this process that are open, in one thread, which is there while there are some."""

    def __init__(self, silent_after: float = SILENT_AFTER, clock: Callable[[], float] = time.monotonic) -> None:
        self._silent_after, self._clock = silent_after, clock
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._open: set[Question] = set()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def asking(self, silent: Callable[[float], None], allowed: float = 0.0) -> Iterator[Question]:
        """Call `silent(seconds)` once, in another thread, where what is done meanwhile takes long: so many seconds longer than `allowed`."""
        if self._process != os.getpid():  # forked: the thread is not here, and what was asked there is not ours
            self._begin()
        question = Question(self._clock() + allowed, silent)
        with self._lock:
            self._open.add(question)
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="esault answers", daemon=True)
                self._thread.start()
        try:
            yield question
        finally:
            with self._lock:
                self._open.discard(question)

    def look(self) -> bool:
        """Say what has been open for too long; return whether anything is open."""
        now = self._clock()
        with self._lock:
            questions = list(self._open)
        for question in questions:
            if now - question.since >= self._silent_after and question.first():
                question.silent(self._silent_after)
        return bool(questions)

    def _look(self) -> None:
        while True:
            time.sleep(self._silent_after / 4)
            if not self.look():
                with self._lock:
                    if not self._open:
                        self._thread = None
                        return
