"""Connections of a program that has many files open."""

from __future__ import annotations

import fcntl
import os
import resource
import socket

import pytest

from esault.cluster.connection import Connection
from esault.cluster.key import ClusterKey, make_key

#: `select` knows none from here on
MANY = 1024


def high(made):
    """Return the same socket under a high number."""
    with made:
        return socket.socket(fileno=fcntl.fcntl(made.fileno(), fcntl.F_DUPFD_CLOEXEC, MANY))


def test_descriptors_may_have_any_number(tmp_path):
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= MANY + 2:
        pytest.skip("this user may have no more files open")
    key = ClusterKey(make_key(tmp_path / "key"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        called = socket.create_connection(listener.getsockname())
        made = high(listener.accept()[0])
    ends = Connection(made, key.server, server=True), Connection(high(called), key.client, server=False)
    node, caller = ends
    also, other = os.pipe()
    try:
        caller.send("hello")
        for _ in range(10):
            for each in ends:
                assert each.wait(0.0, also) in ([], [each.fileno()])
                each._kept = each.receive()
        assert node.receive() == ["hello"]
        os.write(other, b"x")
        assert node.wait(10.0, also) == [also]
    finally:
        for each in ends:
            each.close(1.0)
        os.close(also)
        os.close(other)
