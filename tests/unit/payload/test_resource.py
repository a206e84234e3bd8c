"""Resources: what can be closed or waited for, and holds no data of a key."""

from __future__ import annotations

import collections
import io
import logging
import mmap
import queue
import socket
import sqlite3
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from unittest import mock

import pytest

from esault.payload.resource import is_resource


@pytest.mark.parametrize(
    "make",
    [
        threading.Lock,
        threading.RLock,
        threading.Event,
        threading.local,
        lambda: logging.getLogger("x"),
        ThreadPoolExecutor,
        mock.Mock,
        mock.MagicMock,
        lambda: mock.create_autospec(sqlite3.Connection, instance=True),
    ],
)
def test_locks_loggers_pools_and_mocks_are(make):
    assert is_resource(make())


@pytest.mark.parametrize("module", ["structlog._native", "structlog.stdlib", "loguru._logger"])
def test_loggers_of_other_libraries_are(module):
    assert is_resource(type("BoundLogger", (), {"__module__": module})())


def test_what_is_open_is(tmp_path):
    with open(tmp_path / "f", "w") as file, socket.socket() as link, io.BytesIO() as memory:
        assert is_resource(file) and is_resource(link) and is_resource(memory)
    database = sqlite3.connect(":memory:")
    assert is_resource(database) and is_resource(database.cursor()) is False
    database.close()
    with tempfile.TemporaryFile() as file:
        assert is_resource(file)


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        "a",
        b"a",
        (),
        [],
        {},
        set(),
        Decimal(1),
        collections.deque(),
        iter([1]),
        (x for x in ()),
        zip(),
        int,
        socket.socket,
    ],
)
def test_values_iterators_and_classes_are_none(value):
    assert not is_resource(value)


def test_what_holds_things_is_none_though_it_can_be_closed():
    with memoryview(b"a") as view, mmap.mmap(-1, 10) as held:
        assert not is_resource(view) and not is_resource(held)
    assert not is_resource(queue.Queue()) and not is_resource(queue.SimpleQueue())


def test_an_image_is_none():
    image = pytest.importorskip("PIL.Image").new("RGB", (1, 1))
    assert hasattr(image, "close") and not is_resource(image)
