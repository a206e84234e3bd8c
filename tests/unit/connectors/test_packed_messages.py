"""Messages that a checkpoint keeps."""

from __future__ import annotations

import os

import pytest

from esault.connectors import packed_messages
from esault.connectors.packed_messages import MessagePacker, unpacked
from esault.errors import SinkError

MESSAGES = [("topic", b"\0data", {"h": "ü"}), ("", b"", None)]


def test_with_checkpoints_a_handle_is_bytes_that_hold_them():
    packer = MessagePacker("Sink", kept=True)
    token, later = packer.handle(MESSAGES)
    found, data = later.result()
    again, _ = packer.handle(MESSAGES)
    packer.close()
    packer.close()
    assert found == token != again and isinstance(data, bytes)
    assert [tuple(each) for each in unpacked(data)] == MESSAGES


def test_without_they_are_as_they_are():
    packer = MessagePacker("Sink", kept=False)
    token, (found, kept) = packer.handle(MESSAGES)
    packer.close()
    assert found == token and unpacked(kept) is MESSAGES


def test_none_are_none():
    packer = MessagePacker("Sink", kept=True)
    assert list(unpacked(packer.handle([])[1].result()[1])) == []
    packer.close()


def test_what_is_too_much_for_a_checkpoint_is_said(monkeypatch):
    monkeypatch.setattr(packed_messages, "LARGEST", 1 << 10)
    packer = MessagePacker("MyQueueSink", kept=True)
    with pytest.raises(SinkError, match="MyQueueSink: the rows of a checkpoint"):
        packer.handle([os.urandom(4096)])[1].result()
    assert packer.handle([b"x" * 4096])[1].result()[1]
    packer.close()
