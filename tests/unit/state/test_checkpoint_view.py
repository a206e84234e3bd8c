"""A checkpoint read without a run, and written to files that others read."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from small_bolts import CountAtTheEnd as PerWindow

from esault import Bolt, Topology, by_key, run
from esault.cli.main import main
from esault.errors import CheckpointError
from esault.sources import Items, Paced
from esault.state.checkpoint_view import CheckpointView
from esault.windows import TumblingWindow

pytestmark = pytest.mark.slow
ROWS = [(f"k{n % 7}", n) for n in range(300)]


@dataclass
class Seen:
    times: int


class Count(Bolt):
    def __init__(self):
        self.total = 0
        self.digits: Counter = Counter()
        self.seen = Seen(0)

    def process(self, key, value):
        self.total += value
        self.digits[value % 2] += 1
        self.seen.times += 1
        self.emit(key, self.total)


def topology():
    t = Topology("viewed")
    rows = t.spout("rows", Paced(Items(ROWS), rate=400))
    rows.bolt("count", Count, grouping=by_key(), parallelism=2)
    rows.window("window", PerWindow, TumblingWindow(1000), time=float)
    return t


@pytest.fixture(scope="module")
def paused(tmp_path_factory):
    """The state of a run that was paused in the middle, and how many rows had been processed by then."""
    state = tmp_path_factory.mktemp("state")
    report = run(topology, engine="local", checkpoint=0.1, state=state, seconds=0.4)
    assert report.ended == "paused"
    return state, report.units["count"].tuples_in


def wanted(rows):
    totals: Counter = Counter()
    for key, value in ROWS[:rows]:
        totals[key] += value
    return dict(totals)


def printed(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["checkpoint", *map(str, arguments)])
    said = capsys.readouterr()
    return ended.value.code or 0, said.out, said.err


def test_the_state_of_each_key_is_what_was_processed(paused):
    state, rows = paused
    view = CheckpointView(state)
    found = dict(view.states("count"))
    assert {key: each["total"] for key, each in found.items()} == wanted(rows)
    assert sum(each["seen"].times for each in found.values()) == rows
    assert view.count("count") == 7
    assert sum(len(windows) for _, windows in view.states("window")) >= 7
    assert {(w["start"], w["end"]) for _, windows in view.states("window") for w in windows} == {(0, 1000)}
    assert view.count("window") == len(list(view.states("window"))) == 7  # how far time had come is no key


def test_it_is_shown(paused, capsys):
    state, rows = paused
    code, out, _ = printed(capsys, "show", state)
    assert code == 0 and "viewed: checkpoint" in out and "count: bolt x2, 7 keys" in out
    _, out, _ = printed(capsys, "show", state, "count", "k3")
    assert json.loads(out.partition("\t")[2])["total"] == wanted(rows)["k3"]
    _, out, _ = printed(capsys, "show", state, "count", "--limit", 2)
    assert out.endswith(f"2 of 7 keys in checkpoint {CheckpointView(state).checkpoint.number}\n")


def test_it_is_written_for_others_to_read(paused, capsys, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    state, rows = paused
    for name in ("out/count.parquet", "count.jsonl"):
        code, out, err = printed(capsys, "export", state, "count", "--to", tmp_path / name)
        assert code == 0 and out.startswith("7 keys of 'count'"), err
    found = duckdb.sql(f"select key, total, seen from '{tmp_path}/out/count.parquet'").fetchall()
    assert {key: total for key, total, _ in found} == wanted(rows)
    assert sum(json.loads(seen)["times"] for *_, seen in found) == rows
    lines = [json.loads(line) for line in (tmp_path / "count.jsonl").read_text().splitlines()]
    assert {line["key"]: line["state"]["total"] for line in lines} == wanted(rows)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "{state}", "counts"], "has no bolt 'counts'; it has: count, window"),
        (["show", "{state}", "count", "zz"], "has no state of 'count' for key 'zz'"),
        (["show", "{state}", "--number", "999"], "has no checkpoint 999; it has:"),
        (["show", "{state}/nowhere"], "is no state directory"),
        (["show", "{empty}"], "has no checkpoint of eSault"),
        (["export", "{state}", "count", "--to", "x.csv"], "write FILE.parquet or FILE.jsonl"),
    ],
)
def test_what_is_not_there_is_said(paused, capsys, tmp_path, arguments, says):
    told = [each.format(state=paused[0], empty=tmp_path) for each in arguments]
    code, _, err = printed(capsys, *told)
    assert code == 2 and says in err


def test_a_damaged_piece_is_said(paused, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(paused[0], copy)
    for piece in Path(copy).rglob("*.state"):
        piece.write_bytes(piece.read_bytes()[:-3])
    with pytest.raises(CheckpointError, match="whole|damaged|ends in the middle"):
        dict(CheckpointView(copy).states("count"))


def test_the_newest_checkpoint_of_a_run_that_is_over_is_kept_listed_shown_and_removed(paused, capsys):
    state = str(paused[0])
    code, out, _ = printed(capsys, "create", state, "--name", "first")
    assert code == 0 and out.startswith("viewed: savepoint first: checkpoint ")
    assert printed(capsys, "create", state, "--name", "first")[0] == 2
    assert printed(capsys, "list", state)[1].startswith("first\tcheckpoint ")
    assert "count: bolt x2, 7 keys" in printed(capsys, "show", f"{state}/first")[1]
    assert printed(capsys, "remove", state, "first")[1] == "savepoint first is removed\n"
    assert "no savepoints in" in printed(capsys, "list", state)[1]
