"""The floor of coverage: how rooms are added up and compared."""

from __future__ import annotations

import json

from tests import coverage_floor


def file(lines, of_lines, branches=0, of_branches=0):
    return {
        "summary": {
            "covered_lines": lines,
            "num_statements": of_lines,
            "covered_branches": branches,
            "num_branches": of_branches,
        }
    }


def found(route):
    return {
        "files": {
            "esault/flow/send/route.py": route,
            "esault/flow/__init__.py": file(0, 0),
            "esault/errors.py": file(4, 4),
        }
    }


def test_lines_and_branches_of_a_room_are_added_up():
    assert coverage_floor.by_room(found(file(5, 10, 0, 10))) == {"errors": (100.0, 4), "flow": (25.0, 20)}


def test_a_room_that_comes_below_its_floor_fails_and_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(coverage_floor, "FLOORS", tmp_path / "floors.json")
    place = tmp_path / "found.json"
    place.write_text(json.dumps(found(file(5, 10, 0, 10))))
    assert coverage_floor.main(str(place), renew=True) == 0
    place.write_text(json.dumps(found(file(2, 10, 0, 10))))
    assert coverage_floor.main(str(place)) == 1
    assert "below the floor: flow" in capsys.readouterr().err


def test_what_two_runs_differ_by_is_no_failure():
    floors = {"small": 100.0, "large": 90.0}
    assert coverage_floor.below({"small": (98.0, 100), "large": (89.5, 1000)}, floors) == []
    assert coverage_floor.below({"small": (97.0, 100), "large": (89.4, 1000)}, floors) == ["small", "large"]


def test_a_room_without_a_floor_and_a_room_that_is_gone_fail(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(coverage_floor, "FLOORS", tmp_path / "floors.json")
    place = tmp_path / "found.json"
    place.write_text(json.dumps(found(file(5, 10))))
    assert coverage_floor.main(str(place)) == 1
    assert "no floor for errors, flow: make coverage" in capsys.readouterr().err
    coverage_floor.FLOORS.write_text(json.dumps({"errors": 100.0, "flow": 50.0, "payload": 90.0}))
    assert coverage_floor.main(str(place)) == 1
    assert "below the floor: payload" in capsys.readouterr().err


def test_every_room_of_the_code_has_a_floor():
    package = coverage_floor.FLOORS.parents[1] / "esault"
    rooms = {path.name.removesuffix(".py") for path in package.iterdir() if not path.name.startswith("__pycache__")}
    assert set(json.loads(coverage_floor.FLOORS.read_text())) == rooms - {"py.typed"} - coverage_floor.LEFT_TO.keys()
    assert coverage_floor.LEFT_TO.keys() <= rooms


def test_a_room_whose_tests_need_servers_has_no_floor(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(coverage_floor, "FLOORS", tmp_path / "floors.json")
    place = tmp_path / "found.json"
    place.write_text(json.dumps({"files": {"esault/connectors/kafka/sink.py": file(1, 10)}}))
    assert coverage_floor.main(str(place), renew=True) == 0
    assert "left to tests/connectors" in capsys.readouterr().out
    assert json.loads(coverage_floor.FLOORS.read_text()) == {}
