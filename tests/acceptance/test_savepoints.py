"""A job is upgraded by a savepoint: other code, names and parallelism, killed in between, and every row counts once."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from pathlib import Path

import esault_command
import psutil
import pytest

pytestmark = pytest.mark.slow
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")

SHOP = """
from esault import Bolt, Topology, by_key, shuffle
from esault.sinks import JsonLines
from esault.sources import Directory

class Words(Bolt):
    def process(self, file, line):
        for word in line.split():
            self.emit(word, 1)

class Count(Bolt):
    def __init__(self):
        self.n = 0
        self.first = None

    def process(self, word, one):
        self.n += one
        self.first = self.first or word
        self.emit(word, self.n)

def topology(name: str = "shop", out: str = "out.jsonl"):
    t = Topology(name)
    lines = t.spout("lines", Directory("in", every=0.1), max_parallelism=4)
    words = lines.bolt("words", Words, grouping=shuffle())
    words.bolt("count", Count, grouping=by_key(), parallelism=2).sink("rows", JsonLines(out, mode="replace"))
    return t
"""
STORE = (
    SHOP.replace('"count"', '"tally"')
    .replace("self.first = None", "self.longest = 0")
    .replace("self.first = self.first or word", "self.longest = max(self.longest, len(word))")
)


class Shop:
    """Gets files while it is open, and knows how often each word must be counted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wanted, self.files = folder, Counter(), 0
        (folder / "in").mkdir()
        (folder / "shop.py").write_text(SHOP)
        (folder / "store.py").write_text(STORE)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._closed.wait(0.02) and self.files < 2000:
            words = [f"w{(self.files * 7 + i * i) % 40}" for i in range(60)]
            part = self.folder / "in" / f".{self.files}.txt"
            part.write_text("".join(f"{' '.join(words[i : i + 6])}\n" for i in range(0, 60, 6)))
            part.rename(part.with_name(f"{self.files}.txt"))
            self.wanted.update(words)
            self.files += 1

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def esault(self, *arguments: str) -> tuple[int, str]:
        code, out, err = esault_command.run(*arguments, cwd=self.folder)
        return code, out + err

    def rows(self, out: str = "out.jsonl") -> list[tuple[str, int]]:
        path = self.folder / out
        found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [(row["key"], row["value"]) for row in found]


def killed(command) -> str:
    """All of a run is killed; what it had said."""
    ours = command.processes()
    command.process.kill()
    for process in ours:
        with contextlib.suppress(psutil.Error):
            process.kill()
    said = "".join(command.process.communicate())
    command.until(lambda: not command.processes())
    return said


@pytest.fixture
def shop(tmp_path):
    made = Shop(tmp_path)
    yield made
    made.close()


def test_a_job_goes_on_as_another_from_the_savepoint_at_which_it_was_stopped(shop, command):
    command.start("shop.py:topology", *OPTIONS)
    command.until(lambda: len(shop.rows()) > 2000)
    name = command.name
    code, said = shop.esault("stop", "--run", name, "--savepoint", "upgrade")
    assert code == 0 and f"savepoint upgrade: .esault/{name}/savepoints/upgrade" in said
    assert command.wait()[0] == 0
    before = len(shop.rows())

    changed = ("--parallelism=lines=3", "--parallelism=tally=3", "--rename", "count=tally")
    code, said = shop.esault("run", "store.py", "--plain", *OPTIONS, "--from-savepoint", "upgrade")
    assert code == 2 and "no unit of that name any more" in said and "--rename count=ITS_NAME_NOW" in said
    assert len(shop.rows()) == before  # what is refused changes nothing
    command.name += "v2"
    command.start("store.py:topology", *OPTIONS, *changed, "--from-savepoint", "upgrade")
    command.until(lambda: len(shop.rows()) > before + 1000)
    told = killed(command)
    assert told.count("attribute 'first' of Count is in the state of 40 keys and no attribute of it any more") == 1
    assert told.count("attribute 'longest' of Count is new: the state of 40 keys has none") == 1
    assert "going on from .esault/" in told and "rows of both" not in told

    command.start("store.py:topology", *OPTIONS, "--resume")
    command.until(lambda: command.status().get("phase") == "running")
    shop.close()
    command.until(lambda: len(shop.rows()) >= shop.wanted.total())
    units = {unit["name"]: unit["sub_units"] for unit in command.status()["units"]}
    assert (units["lines"], units["tally"]) == (3, 3)
    assert command.stop()[0] == 0
    # the rows of a word are numbered by its count, and the state went on from where it was
    assert Counter(shop.rows()) == Counter(
        (word, n) for word, total in shop.wanted.items() for n in range(1, total + 1)
    )


def test_a_savepoint_of_a_running_job_is_gone_back_to_long_after(shop, command):
    command.start("shop.py:topology", *OPTIONS)
    command.until(lambda: len(shop.rows()) > 1000)
    name = command.name
    code, said = shop.esault("checkpoint", "create", name, "--name", "live")
    assert code == 0 and f"{name}: savepoint live: checkpoint " in said
    there = shop.esault("checkpoint", "show", f"{name}/live", "count", "--limit", "100")[1]
    counted = {
        key: json.loads(state)["n"] for key, _, state in (line.partition("\t") for line in there.splitlines()[:-1])
    }
    rows = len(shop.rows())
    command.until(lambda: len(shop.rows()) > rows + 2000)  # more checkpoints than are kept
    killed(command)
    assert 0 < sum(counted.values()) < len(shop.rows())

    # another topology that has no such unit: its state is let go only where that is said
    bare = SHOP.replace('    words.bolt("count"', '    words.bolt("other"')
    (shop.folder / "bare.py").write_text(bare)
    run = ("run", "bare.py", "--plain", *OPTIONS, "--from-savepoint", f"{name}/live", "--set=out=bare.jsonl")
    assert "--allow-dropped-state" in shop.esault(*run)[1]
    code, said = shop.esault(*run, "--allow-dropped-state", "--seconds", "0.1")
    assert code == 0 and "unit 'count' of checkpoint" in said and "has no taker: dropped are 4" in said

    command.name += "v2"
    arguments = ("--from-savepoint", f"{name}/live", "--rename", "count=tally", "--parallelism=lines=2")
    command.start("store.py:topology", *OPTIONS, *arguments, out="again.jsonl")
    command.until(lambda: len(shop.rows("again.jsonl")) > 500)
    killed(command)
    command.start("store.py:topology", *OPTIONS, "--resume", out="again.jsonl")
    command.until(lambda: command.status().get("phase") == "running")
    shop.close()
    command.until(lambda: len(shop.rows("again.jsonl")) >= shop.wanted.total() - sum(counted.values()))
    assert command.stop()[0] == 0
    assert Counter(shop.rows("again.jsonl")) == Counter(
        (word, n) for word, total in shop.wanted.items() for n in range(counted.get(word, 0) + 1, total + 1)
    )
