"""`esault run` of a test, asked by its control socket: as `esault status` asks, without the start of a Python for each question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from waiting import PATIENCE

from esault.errors import UsageError
from esault.runtime.process.run_dir import living_run_dirs
from esault.runtime.session.control_client import ask
from esault.runtime.session.control_socket import NAME


def run_dirs(pid: int) -> list[Path]:
    """Folders of the run of this command, while it lives."""
    return [path for path in living_run_dirs() if path.name.split("-")[1] == str(pid)]


def tell(pid: int, **request: Any) -> list[dict[str, Any]]:
    """All answers of the run of this command. Raises UsageError where there is none, or the answer is an error."""
    folder = next(iter(run_dirs(pid)), None)
    if folder is None:
        raise UsageError("it does not run yet, or not any more")
    return list(ask(folder / NAME, request, PATIENCE))


def status(pid: int) -> dict[str, Any]:
    """Its status; {} where it does not answer: it begins, or has ended."""
    try:
        return tell(pid, do="status")[-1]
    except (IndexError, UsageError):
        return {}
