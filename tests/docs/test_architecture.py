"""docs/explanation/architecture.md shows the code as it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import drawings  # noqa: E402

TEXT = drawings.PAGE.read_text()
WALKS = re.findall(r"<!-- walk: (\w+) -->\n(.*?)<!-- end -->", TEXT, re.DOTALL)


def test_the_pictures_are_those_of_the_code():
    assert drawings.written(TEXT) == TEXT, "draw them anew: python docs/drawings.py"


def test_each_room_that_has_folders_to_show_is_shown():
    assert re.findall(r"<!-- drawn: (\w+) -->", TEXT) == ["rooms", *drawings.ROOMS]


def test_there_are_three_walks():
    assert [name for name, _ in WALKS] == ["tuple", "scale", "checkpoint"]


@pytest.mark.parametrize(("name", "walk"), WALKS, ids=[name for name, _ in WALKS])
def test_a_walk_names_files_that_are_there(name, walk):
    links = re.findall(r"\[`([^`]+)`\]\(([^)]+)\)", walk)
    assert len(links) >= 10
    for said, place in links:
        path = (drawings.PAGE.parent / place).resolve()
        assert path.is_file(), f"{name}: {said} is elsewhere"
        assert path == drawings.CODE / said


def test_an_arrow_that_follows_from_others_is_left_out():
    arrows = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert drawings.reduced(arrows) == {"a": {"b"}, "b": {"c"}, "c": set()}
    with pytest.raises(ValueError, match="imports itself"):
        drawings.reduced({"a": {"b"}, "b": {"a"}})
