"""At least once, ids name rows: a death of the spout that follows files gives each row the id that it had, and no other one."""

from __future__ import annotations

import json
import random

import pytest
from small_bolts import Named

from esault import Topology
from esault.messages.settings import Settings
from esault.sources import JsonFiles, Paced, TextFiles
from esault.sources.line_file import LineFile
from esault.testing import LocalRuntime

SPOUTS = {
    "lines": lambda: TextFiles("*.log", follow=True),
    "paced": lambda: Paced(TextFiles("*.log", follow=True), rate=50_000),
    "objects": lambda: JsonFiles("*.log", key="id", follow=True, on_bad_line="skip"),
}


@pytest.fixture(autouse=True)
def closed(monkeypatch):
    """What a process that was killed had open is closed by the system; here it is done by hand."""
    opened, init = [], LineFile.__init__
    monkeypatch.setattr(LineFile, "__init__", lambda self, *given: (opened.append(self), init(self, *given))[1])
    yield
    for file in opened:
        file.close()


@pytest.mark.parametrize("source", SPOUTS)
@pytest.mark.parametrize("seed", range(2))
def test_no_id_names_two_rows_whoever_dies(tmp_path, monkeypatch, source, seed):
    monkeypatch.chdir(tmp_path)
    order, count = random.Random(seed), 0
    rows = {f"{name}.log": [] for name in "abcde"}

    def write():
        nonlocal count
        for name in order.choices(list(rows), k=3):
            with open(name, "a") as out:
                for _ in range(order.randint(1, 30)):
                    row = json.dumps({"id": f"{name}{count}"}) if count % 5 or source != "objects" else "{oops"
                    out.write(f"{row}\n")
                    count += 1
                    rows[name].append(row)

    write()
    t = Topology("named")
    t.spout("lines", SPOUTS[source]()).sink("out", Named())
    local = LocalRuntime(t, seed=seed, settings=Settings(max_pending=4, root_rows=16))
    deaths = 0
    for step in range(2500):
        if step % 40 == 0:
            write()
        (spout,) = local.sub_units("lines") or [None]
        if step % 400 == 399 and spout is not None and local.driver.phase == "running":
            local.kill(spout)
            deaths += 1
        if not local.step():
            local.wait()
    local.run_for(5)
    local.drain()
    local.run_until_drained()
    landed = local.landed("out")
    wanted = [row for each in rows.values() for row in each if row != "{oops"]
    values = {json.dumps(row.value) if source == "objects" else row.value for row in landed}
    named = {}
    for row in landed:
        assert named.setdefault(row.id, (row.key, row.value)) == (row.key, row.value)
    assert deaths > 2
    assert values == set(wanted)
    assert len(named) >= len(set(wanted))
