"""Two versions of a topology side by side on the same input."""

from __future__ import annotations

import json
from collections import Counter

import pytest

pytestmark = pytest.mark.slow

FIRST = """
from dataclasses import dataclass

from esault import Bolt, Topology, by_key, dead_letter
from esault.sinks import JsonLines
from esault.sources import Items, Paced

@dataclass
class Order:
    shop: str
    n: int

class Total(Bolt):
    def __init__(self):
        self.n = 0

    def process(self, shop, order):
        self.n += order.n
        self.emit(shop, self.n)

def orders(rows):
    for n in range(rows):
        yield f"s{n % 7}", Order(f"s{n % 7}", n)

def topology(name: str, rows: int = 2000, rate: float = 1000.0, out: str = "out.jsonl"):
    t = Topology(name)
    totals = t.spout("orders", Paced(Items(lambda: orders(rows)), rate=rate)).bolt(
        "total", Total, grouping=by_key(), parallelism=2, on_error=dead_letter("dead.jsonl"))
    totals.sink("out", JsonLines(out, mode="replace"))
    return t
"""


def rows_of(path):
    with open(path) as file:
        return Counter(file)


@pytest.fixture
def versions(tmp_path):
    (tmp_path / "first.py").write_text(FIRST)
    (tmp_path / "same.py").write_text(FIRST.replace("self.n += order.n", "self.n = order.n + self.n"))
    wrong = FIRST.replace("self.n += order.n", 'self.n += order.n / (order.n != 77) if shop == "s0" else order.n')
    (tmp_path / "other.py").write_text(wrong.replace("rows: int", "unused: int = 0, rows: int"))
    (tmp_path / "unknown.py").write_text(FIRST.replace('"orders"', '"sales"'))
    return tmp_path


def test_a_version_that_does_the_same_is_found_to_though_processes_die(command, versions):
    command.start(
        f"{versions}/first.py:topology",
        "--shadow",
        "same.py",
        "--checkpoint",
        "0.3",
        "--policy",
        "none",
        rows=1_000_000,
    )
    command.until(lambda: command.status().get("checkpoint", 0) > 2)
    command.processes("total/")[0].kill()
    kept = command.status()["checkpoint"]
    command.until(lambda: command.status().get("restores", 0) == 1 and command.status()["checkpoint"] > kept + 1)
    code, out, err = command.stop()
    assert code == 0, err
    first, shadow = (versions / f".esault/shadow/{command.name}/{side}/out.jsonl" for side in ("first", "shadow"))
    assert rows_of(first) == rows_of(shadow) == rows_of(versions / "out.jsonl")
    assert f"out: the same {rows_of(first).total():,} rows" in out


def test_both_go_on_from_a_savepoint_and_are_paused_together(command, versions):
    finishing = FIRST.replace(
        "class Total(Bolt):", "class Total(Bolt):\n    def finish(self):\n        self.emit(self.key, -1)\n"
    )
    (versions / "first.py").write_text(finishing)
    (versions / "renamed.py").write_text(finishing.replace('"total"', '"sum"'))
    how = (f"{versions}/first.py:topology", "--checkpoint", "0.3", "--policy", "none")
    command.start(*how, rows=1_000_000)
    command.until(lambda: command.status().get("checkpoint", 0) > 1)
    kept = command.tell(do="savepoint", name="monday")[-1]["checkpoint"]
    assert command.stop()[0] == 0
    again = ("--from-savepoint", "monday", "--restart", "--shadow", "renamed.py")
    code, _, err = command.run(*how, *again, rows=1_000_000)
    assert code == 2 and "if it was renamed, say --shadow-rename total=" in err
    for option in again[:3], ("--resume",):  # the first time they go back, the second time on
        command.start(*how, *option, "--shadow", "renamed.py", "--shadow-rename", "total=sum", rows=1_000_000)
        command.until(lambda: command.status().get("checkpoint", 0) > kept + 2)
        kept = command.status()["checkpoint"]
        code, out, err = command.stop()
        assert code == 0, out + err
        first, shadow = (
            rows_of(versions / f".esault/shadow/{command.name}/{side}/out.jsonl") for side in ("first", "shadow")
        )
        assert first == shadow and f"out: the same {first.total():,} rows" in out
        assert not any('"value": -1}' in row for row in first), "nothing is finished where both are paused"


def test_what_another_version_does_otherwise_is_shown_and_touches_nothing(command, versions):
    code, out, err = command.run(
        f"{versions}/first.py:topology", "--shadow", "other.py", "--shadow-set", "unused=1", "--policy", "none"
    )
    assert code == 3, err
    landed = rows_of(versions / "out.jsonl")
    totals = Counter()
    wanted = Counter()
    for n in range(2000):
        totals[n % 7] += n
        wanted[json.dumps({"key": f"s{n % 7}", "value": totals[n % 7]}) + "\n"] += 1
    assert landed == wanted
    # from 77 on, which fails there, a shop's totals are others, and as floats
    differ = len(range(0, 2000, 7))
    assert f"out: {2 * differ - 1} rows of 1 key differ; 2,000 in the first version, 1,999 in the shadow" in out
    assert '  - {"key": "s0", "value": 0}\n' in out and '  + {"key": "s0", "value": 0.0}\n' in out
    assert not list(versions.glob("dead*")), "dead letters of the shadow are its own"
    assert len(list((versions / f".esault/shadow/{command.name}/shadow/dead").iterdir())) == 1


def test_a_version_with_other_spouts_is_refused_before_anything_begins(command, versions):
    code, _, err = command.run(f"{versions}/first.py:topology", "--shadow", "unknown.py")
    assert code == 2
    assert "spout 'sales' of unknown.py:topology is not in the first version, which has orders" in err
    assert not (versions / "out.jsonl").exists()
