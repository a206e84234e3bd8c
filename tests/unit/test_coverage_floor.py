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
    assert coverage_floor.by_room(found(file(5, 10, 0, 10))) == {"errors": 100.0, "flow": 25.0}


def test_a_room_that_comes_below_its_floor_fails_and_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(coverage_floor, "FLOORS", tmp_path / "floors.json")
    place = tmp_path / "found.json"
    place.write_text(json.dumps(found(file(5, 10, 0, 10))))
    assert coverage_floor.main(str(place), renew=True) == 0
    place.write_text(json.dumps(found(file(2, 10, 0, 10))))
    assert coverage_floor.main(str(place)) == 1
    assert "below the floor: flow" in capsys.readouterr().err
