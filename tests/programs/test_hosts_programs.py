"""Programs on two hosts of one machine: a host is emptied while tuples flow, so that its sub-units move to the other one."""

from __future__ import annotations

import signal

import depth
import pytest
from nodes import Nodes
from user_programs import Program
from user_runs import Run

pytestmark = pytest.mark.slow
SIZE, RATE = 1500, 500.0
#: program -> a unit of it whose state is to move
CHOSEN = {
    "doors": "machine",
    "parcels": "follow",
    "signals": "filter",
    "takings_by_hour": "minutes",
    "telemetry": "watch",
}


@pytest.fixture
def hosts(tmp_path):
    made = Nodes(tmp_path)
    try:
        made.start("a", "b", slots=4)
        yield made
    finally:
        made.end()


@pytest.mark.parametrize("name", depth.chosen(CHOSEN, ("takings_by_hour",)))
def test_state_that_moves_from_host_to_host_gives_what_a_plain_loop_gives(hosts, name, tmp_path):
    run = Run(Program(name), tmp_path)

    def of_host(host):
        found = run.status().get("hosts", {}).get(host, {})
        return {sub_unit.partition("/")[0] for sub_unit in found.get("sub_units", ())}

    try:
        run.start_held(*hosts.options, "--policy", "none", size=SIZE, rate=RATE)
        unit, spouts = CHOSEN[name], {u.name for u in run.program.plan(size=1).units.values() if u.kind == "spout"}
        run.tell(do="scale", unit=unit, n=2)
        leaving = run.until(lambda: next((h for h in "ab" if unit in of_host(h) and not spouts & of_host(h)), None))
        hosts[leaving].kill(signal.SIGTERM)
        run.until(lambda: leaving not in run.status().get("hosts", {leaving: None}))
        run.go_on()
        run.wait()
    finally:
        run.end()
    run.program.check_files(tmp_path / "out", SIZE)
    report = run.report()
    assert [c for c in report["changes"] if c["unit"] == unit and c["kind"] == "move"], report["changes"]
    assert (report["deaths"], report["roots"]["replayed"]) == (0, 0)
    assert run.left() == []
