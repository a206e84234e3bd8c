"""The folder of what is kept for a user between runs, for users with and without a home."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from esault import UsageError
from esault.state_home import make_state_home, state_home


@pytest.fixture
def nowhere(monkeypatch):
    """A user of whom no home is known."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)


def test_it_is_where_the_user_s_state_is(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_home() == tmp_path / ".local" / "state" / "esault"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    assert state_home() == tmp_path / "mine" / "esault"


def test_it_is_made_for_its_user_alone_and_stays_as_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = make_state_home("runs")
    assert made == tmp_path / "esault" / "runs"
    assert made.stat().st_mode & 0o777 == 0o700
    (made / "kept").touch()
    assert make_state_home("runs") == made and (made / "kept").exists()
    assert make_state_home() == made.parent


def test_a_user_without_a_home_has_none_and_is_told_what_to_name(nowhere, monkeypatch, tmp_path):
    assert state_home() is None
    with pytest.raises(UsageError, match="this user has no home folder, .*: name a folder by XDG_STATE_HOME"):
        make_state_home()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_home() == tmp_path / "esault"


def test_where_it_cannot_be_made_another_place_is_asked_for(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(
        UsageError, match=r"file/esault cannot be made: Not a directory; name another place by XDG_STATE_HOME"
    ):
        make_state_home()
    assert isinstance(state_home(), Path)
