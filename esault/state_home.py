"""The folder of what is kept for a user between runs: keys of this machine, and logs of runs in the background."""

from __future__ import annotations

import os
from pathlib import Path

from esault.errors import UsageError

__all__ = ["make_state_home", "state_home"]


def state_home() -> Path | None:
    """Return the folder, as `$XDG_STATE_HOME` or the user's home says; None for a user without a home."""
    named = os.environ.get("XDG_STATE_HOME")
    home = os.path.expanduser("~")
    if not named and home == "~":
        return None
    return Path(named or os.path.join(home, ".local", "state")) / "esault"


def make_state_home(below: str = "") -> Path:
    """Make the folder, or one below it, and return it. Raises UsageError."""
    folder = state_home()
    if folder is None:
        raise UsageError("this user has no home folder, and something is to be kept: name a folder by XDG_STATE_HOME")
    folder /= below
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be made: {error.strerror or error}; name another place by XDG_STATE_HOME"
        ) from None
    return folder
