"""Copies of a bolt on real processes: kill -9 of either, in mid-stream and in mid-move; then count what landed."""

from __future__ import annotations

import json
from collections import Counter

import depth
import pytest
from test_runs import landed, write_lines

pytestmark = pytest.mark.slow


def unit(command, name):
    return next((u for u in command.status()["units"] if u["name"] == name), {})


def begin(command, folder, p=1):
    lines = write_lines(folder, 60_000)
    arguments = ("--policy", "none", "--report", "r.json", "--slots", "24")
    command.start("twins", *arguments, path="in.txt", out="table", p=p, rate=400.0)
    command.running()
    command.until(lambda: landed(folder / "table"))
    return lines


def flows_on(command, lines=400):
    """Until so many more lines have been read and counted."""
    after = unit(command, "lines")["tuples_out"] + lines
    command.until(lambda: unit(command, "lines")["tuples_out"] >= after)


def end(command, folder, lines):
    """Stop it in order; what is wrong with what landed, and the report."""
    code, _, err = command.stop()
    assert code == 0, err
    ids = Counter(row["_id"].split(":")[1] for row in landed(folder / "table"))
    last = max(int(each.split(".")[0]) for each in ids)
    missing = [f"{i}.{j}.0" for i in range(last + 1) for j in range(8) if f"{i}.{j}.0" not in ids]
    assert missing == []
    report = json.loads((folder / "r.json").read_text())
    repeated = sum(count - 1 for count in ids.values())
    rows = [json.loads(line) for line in (folder / "table.totals").read_text().splitlines()]
    totals = {row["key"]: row["value"] for row in rows}
    assert len(totals) == len(rows)
    expected = Counter(word for line in lines[: last + 1] for word in line.split())
    return repeated, totals == expected, report


@pytest.mark.parametrize("victim", depth.chosen(["count", "count~1"], ["count"]))
def test_the_death_of_a_copy_loses_nothing_repeats_nothing_and_replays_nothing(command, tmp_path, victim):
    lines = begin(command, tmp_path)
    for _ in range(2):  # its successor, too, which has all that it had
        command.processes(f"{victim}/")[0].kill()
        flows_on(command)
        command.until(lambda: unit(command, victim)["processes"])
    repeated, exact, report = end(command, tmp_path, lines)
    assert repeated == 0
    assert exact
    assert report["roots"]["replayed"] == 0
    assert report["deaths"] == 2
    assert report["units"][victim]["state_lost"] == 0


@pytest.mark.parametrize("victim", depth.chosen(["old", "new", "other"], ["new"]))
def test_a_death_in_the_move_of_a_copy_loses_nothing(command, tmp_path, victim):
    lines = begin(command, tmp_path)
    before = {p.pid for p in command.processes("count/")}
    assert command.tell(do="change", unit="count", kind="move")
    if victim == "new":
        chosen = command.until(lambda: [p for p in command.processes("count/") if p.pid not in before])
    else:
        chosen = command.processes("count/" if victim == "old" else "count~1/")
    chosen[0].kill()
    flows_on(command)
    repeated, exact, report = end(command, tmp_path, lines)
    # A copy that is moved and loses somebody is made up for by the other; the other one's death finds a whole copy.
    assert repeated == 0
    assert exact
    assert report["roots"]["replayed"] == 0


def test_a_move_of_a_copy_and_a_change_of_all_lose_nothing(command, tmp_path):
    lines = begin(command, tmp_path)
    assert command.tell(do="change", unit="count~1", kind="move")
    flows_on(command)
    command.until(lambda: command.scaled("count", 2))  # once the move is over
    command.until(lambda: [unit(command, name)["sub_units"] for name in ("count", "count~1")] == [2, 2])
    flows_on(command)
    assert end(command, tmp_path, lines)[:2] == (0, True)


@pytest.mark.parametrize("arguments", [("--checkpoint", "1"), ("--acks", "off"), ("--ackers", "2")])
def test_what_copies_do_not_go_together_with_is_said_before_anything_starts(command, tmp_path, arguments):
    write_lines(tmp_path, 10)
    code, _, err = command.refused("twins", *arguments, path="in.txt", out="table")
    assert code == 2
    assert f"unit 'count' has replicas, which do not go together with {arguments[0]}" in err
    assert "Traceback" not in err
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize("victim", depth.chosen(["count~merger", "split"], ["count~merger"]))
def test_the_death_of_another_process_loses_nothing(command, tmp_path, victim):
    lines = begin(command, tmp_path)
    command.processes(f"{victim}/")[0].kill()
    flows_on(command)
    end(command, tmp_path, lines)
