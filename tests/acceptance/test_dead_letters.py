"""Dead letters on real processes: sent again into the run, through deaths, and as the source of a later run."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path

import esault_command
import pytest

import esault
from esault.sources.dead_letter_files import DeadLetterFiles

pytestmark = pytest.mark.slow
MENDED = str(Path(__file__).with_name("mended.py"))


def deadletters(command, *words):
    """`esault deadletters` beside the run; its exit code and what it prints."""
    code, out, err = esault_command.run("deadletters", *words, cwd=command.folder)
    return code, out + err


def kept(command):
    return list(DeadLetterFiles(command.folder / "dead.jsonl").read())


def landed(command, out="out"):
    return Counter(row["value"][0] for row in esault.read(command.folder / out).to_pylist())


def test_dead_letters_are_sent_again_and_each_counts_once_through_deaths(command):
    command.start(f"{MENDED}:topology", "--checkpoint", "0.3", "--policy", "none")
    command.until(lambda: len(kept(command)) > 60)
    code, said = deadletters(command, "list", command.name, "--json", "--limit", "1")
    assert code == 0
    assert json.loads(said)["unit"] == "total"
    (command.folder / "mended").touch()
    sending = threading.Thread(target=deadletters, args=(command, "send", "dead.jsonl", "--run", command.name))
    sending.start()
    os.kill(next(iter(command.processes("total"))).pid, signal.SIGKILL)
    sending.join()
    command.until(lambda: deadletters(command, "send", command.name)[0] == 0)
    assert all(each.sent for each in kept(command))
    assert command.scaled("total", 3)
    assert deadletters(command, "send", command.name)[1] == "there is nothing to send\n"
    # All of it dies; what goes on from the checkpoint has them once.
    for process in [*command.processes(), command.process]:
        os.kill(process.pid, signal.SIGKILL)
    command.wait()
    command.start(f"{MENDED}:topology", "--checkpoint", "0.3", "--policy", "none", "--resume")
    command.running()
    assert command.stop()[0] == 0
    found = landed(command)
    failed = {value for each in kept(command) for _, value in each.rows()}
    assert set(found) == set(range(max(found) + 1))
    assert set(found.values()) == {1}
    assert failed <= set(found)


def test_a_later_run_takes_them_as_its_source(command, other_command):
    other_command.folder = command.folder
    code, *said = command.run(f"{MENDED}:topology", "--policy", "none", rows=300)
    assert code == 0, said
    (command.folder / "mended").touch()
    for out in ("again", "once_more"):  # the second finds none
        code, *said = other_command.run(f"{MENDED}:again", "--policy", "none", "--checkpoint", "1", out=out)
        assert code == 0, said
    assert landed(command) + landed(command, "again") == Counter(range(300))
    assert not landed(command, "once_more")
    assert all(each.sent for each in kept(command))
