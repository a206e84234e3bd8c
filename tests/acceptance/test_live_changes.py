"""Changes of a running topology on real processes, with a kill -9 in the middle; then count what landed."""

from __future__ import annotations

import contextlib
import subprocess

import depth
import esault_command
import pytest
from test_runs import landed, run_dirs, write_lines

from esault.errors import UsageError

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def scaling(command, n, name="count"):
    """`esault scale count n` in another terminal, once the driver has taken the wish."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    asking = esault_command.start("scale", name, str(n), "--run", command.name, **pipes)
    try:
        said = asking.stdout.readline()
        while "waits for the checkpoint" in said:
            said = asking.stdout.readline()
        assert f"to {n} sub-units" in said
        yield asking
        asking.communicate(timeout=200)
    finally:
        asking.kill()
        asking.communicate()


def unit(command, name):
    return next(u for u in command.status()["units"] if u["name"] == name)


#: the unit that grows, and who dies
KILLS = [("count", "count"), ("count", "split"), ("count", "newest"), ("split", "split"), ("split", "newest")]


@pytest.mark.parametrize(("grown", "victim"), depth.chosen(KILLS, KILLS[::2]))
def test_who_is_killed_in_mid_change_loses_nothing(command, tmp_path, grown, victim):
    write_lines(tmp_path, 60_000)
    command.start("words", "--policy", "none", path="in.txt", out="table", p=2, rate=400.0)
    command.running()
    before = unit(command, "lines")["tuples_out"]
    with scaling(command, 4, grown):
        processes = command.processes(grown if victim == "newest" else victim)
        chosen = max(processes, key=lambda p: p.pid) if victim == "newest" else min(processes, key=lambda p: p.pid)
        chosen.kill()
    # dropped if it died before anybody knew of the new table, done otherwise; never something between
    command.until(lambda: unit(command, grown)["sub_units"] in (2, 4))
    after = unit(command, "lines")["tuples_out"] + 200
    command.until(lambda: unit(command, "lines")["tuples_out"] >= after)
    code, _, err = command.stop()
    assert code == 0, err
    found = {row["_id"].split(":")[1] for row in landed(tmp_path / "table")}
    last = max(int(each.split(".")[0]) for each in found)
    missing = [f"{i}.{j}.0" for i in range(last + 1) for j in range(8) if f"{i}.{j}.0" not in found]
    assert missing == []
    assert last + 1 >= before  # not `after`, in which what was replayed counts twice


def test_the_death_of_the_driver_in_mid_change_ends_the_run_and_leaves_a_whole_table(command, tmp_path):
    write_lines(tmp_path, 60_000)
    command.start("words", "--policy", "none", path="in.txt", out="table", p=2, rate=400.0)
    command.running()
    command.until(lambda: landed(tmp_path / "table"))
    with scaling(command, 4) as asking:
        command.processes("driver")[0].kill()
    assert asking.returncode in (0, 2)  # the change may have been over before the kill
    code, _, err = command.wait()
    assert code not in (0, 2)
    assert "driver" in err
    assert command.processes() == []
    assert run_dirs(command) == []
    ids = [row["_id"] for row in landed(tmp_path / "table")]
    assert len(ids) == len(set(ids)) > 0  # what was committed before is whole, and nothing else is to be seen


def test_the_state_of_a_key_is_shown_wherever_it_is(command):
    command.start(
        "waiting", "--policy", "none", "--parallelism", "count=2", out="out.jsonl", rows=1_000_000, rate=500.0
    )
    command.running()
    some = command.until(lambda: command.tell(do="state", unit="count", limit=5)[-1]["found"])
    key = str(some[0]["key"])
    command.scale("count", 3)
    (found,) = command.until(lambda: command.tell(do="state", unit="count", key=key)[-1]["found"])
    assert str(found["key"]) == key and found["state"]
    code, out, err = esault_command.run("state", "count", key, "--run", command.name)
    assert code == 0 and out.startswith(f"{key}\t"), err
    assert command.stop()[0] == 0


def test_a_change_that_is_asked_for_while_the_run_begins_is_made_once_it_has(command, tmp_path):
    write_lines(tmp_path, 60_000)
    command.start("words", "--policy", "none", path="in.txt", out="table", p=2, rate=400.0)
    refused = []

    def asked():
        try:
            return command.tell(do="scale", unit="count", n=3)
        except UsageError as error:  # there is nothing yet that could be asked
            refused.append(str(error))
            return None

    answers = command.until(asked)
    assert answers[-1]["done"]
    assert not [each for each in refused if "starting" in each]
    code, _, err = command.stop()
    assert code == 0, err
