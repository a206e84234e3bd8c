"""The audit log: a JSON object a line, for this user alone, and never an error for who is asked."""

from __future__ import annotations

import json
import os
import stat
import threading

import pytest

from esault.cluster import audit
from esault.cluster.audit import AuditLog
from esault.errors import UsageError


def read(path):
    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text("utf-8").splitlines()]


def test_a_line_says_who_asked_for_what(tmp_path):
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log.write("ops", "10.0.0.1:4", "scale", "accepted", unit="count", to=3, quiet=True)
    log.write("", "x", "connect", "no\nkey\u2028", text="a\nb\ud800")
    log.close()
    one, two = read(path)
    assert one.pop("time") < two.pop("time") + "z"
    assert one == {
        "who": "ops",
        "from": "10.0.0.1:4",
        "do": "scale",
        "unit": "count",
        "to": 3,
        "quiet": True,
        "answer": "accepted",
    }
    assert two["text"] == "a\nb\ud800" and two["answer"] == "no\nkey\u2028"


def test_only_this_user_may_read_it_and_lines_are_added(tmp_path):
    path = tmp_path / "audit.jsonl"
    for _ in range(2):
        log = AuditLog(path)
        log.write("a", "b", "c", "accepted")
        log.close()
    assert len(read(path)) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_numbers_that_json_has_not_are_text(tmp_path):
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log.write("a", "b", "scale", "accepted", to=float("nan"), most=float("inf"), rate=1.5)
    log.close()
    assert [(one["to"], one["most"], one["rate"]) for one in read(path)] == [("nan", "inf", 1.5)]


def test_what_was_asked_for_cannot_stand_in_for_who_asked(tmp_path):
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log.write("ops", "10.0.0.1:4", "scale", "no", **{"who": "root", "from": "here", "time": "never", "do": "status"})
    log.close()
    (one,) = read(path)
    assert (one["who"], one["from"], one["do"], one["answer"]) == ("ops", "10.0.0.1:4", "scale", "no")
    assert one["time"] != "never"


def test_long_values_are_cut(tmp_path):
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log.write("w" * 9999, "f" * 9999, "d" * 9999, "a" * 9999, text="t" * 9999, of=["x"] * 9999)
    log.close()
    assert len(path.read_text()) < 2500


def test_files_follow_one_another_and_the_oldest_go(tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "FILE_BYTES", 400)
    monkeypatch.setattr(audit, "OLDER_FILES", 2)
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    for number in range(40):
        log.write("a", "b", "c", "accepted", number=number)
    log.close()
    assert sorted(os.listdir(tmp_path)) == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    names = ["audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]
    kept = [one["number"] for name in names for one in read(tmp_path / name)]
    assert kept == list(range(kept[0], 40)) and len(kept) >= 3


def test_lines_of_several_threads_are_whole(tmp_path):
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    threads = [
        threading.Thread(target=lambda n=n: [log.write("a", "b", "c", "yes", n=n) for _ in range(50)]) for n in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    log.close()
    assert sorted(one["n"] for one in read(path)) == sorted([*range(4)] * 50)


def test_a_full_disk_is_logged_once_and_raises_nothing(caplog):
    log = AuditLog("/dev/full")
    for _ in range(3):
        log.write("a", "b", "c", "accepted")
    log.close()
    assert [record.message.split(":")[0] for record in caplog.records] == ["the audit log cannot be written"]


def test_a_file_that_cannot_be_made_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be written"):
        AuditLog(tmp_path / "none" / "audit.jsonl")
