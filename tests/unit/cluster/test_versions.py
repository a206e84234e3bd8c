"""What two ends say of what is installed."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

from esault.cluster import versions
from esault.cluster.codec import pack
from esault.cluster.messages import StartHost
from esault.messages.settings import Settings
from esault.runtime.remote import host_process


def test_any_other_code_is_another_build(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "room" / "b.py").write_text("y = 1\n")
    before = versions._digest(tmp_path)
    (tmp_path / "notes.txt").write_text("no code")
    assert versions._digest(tmp_path) == before
    (tmp_path / "room" / "b.py").write_text("y = 2\n")
    changed = versions._digest(tmp_path)
    (tmp_path / "room" / "b.py").rename(tmp_path / "room" / "c.py")
    assert len({before, changed, versions._digest(tmp_path)}) == 3


def test_differences_name_both_sides():
    hello = versions.hello()
    assert versions.differences(hello) == ""
    said = versions.differences(replace(hello, protocol=99, esault="0.0.1", python="2.7"))
    assert "version 99 of the protocol" in said
    assert f"it has eSault 0.0.1, and {versions.installed()} is here" in said
    assert "it has Python 2.7" in said


def test_a_host_whose_code_was_replaced_under_its_node_is_refused(tmp_path, capfd, monkeypatch):
    order = tmp_path / "order"
    order.write_bytes(pack(StartHost("r", "t", 1, "f", None, "m", (), "/", {}, Settings(), {}, None, 0.0, 0.0, "")))
    monkeypatch.setattr(host_process, "end_with", lambda parent: None)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(os, "dup2", lambda old, new: None)
    assert host_process.main([str(order), "a", "127.0.0.1", "1", "0.0.1"]) == 1
    assert f"refused host a has eSault {versions.installed()} by now, and its node is 0.0.1" in capfd.readouterr().out
    assert not order.exists()
