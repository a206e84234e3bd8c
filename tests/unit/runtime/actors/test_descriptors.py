"""What waits for events in a process of the actor system."""

from __future__ import annotations

import errno
import os
import selectors

from esault.runtime.actors.descriptors import selector


def test_a_selector_without_descriptors_where_none_is_left(monkeypatch):
    def none_left():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(selectors, "DefaultSelector", none_left)
    read, write = os.pipe()
    with selector() as waits:
        waits.register(read, selectors.EVENT_READ)
        assert not waits.select(0)
        os.write(write, b"x")
        assert [key.fd for key, _ in waits.select(0)] == [read]
    os.close(read)
    os.close(write)
