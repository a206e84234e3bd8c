"""`esault list`."""

from __future__ import annotations

import json
from typing import Any

import click

__all__ = ["command"]


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line, for programs.")
def command(as_json: bool) -> None:
    """List the runs of this user on this machine: those under way, and those begun with --detach that are over."""
    rows = _runs()
    if as_json:
        for each in rows:
            print(json.dumps(each))
        return
    if not rows:
        print("no topology is running, and none ran in the background; `esault run --detach` begins one")
        return
    table = [("topology", "state", "run", "process", "log"), *((*(str(v) for v in each.values()),) for each in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _runs() -> list[dict[str, Any]]:
    """Return one for each run, the newest last."""
    from esault.runtime.session.control_client import running
    from esault.runtime.session.detached import LOG, detached_runs

    found: dict[str, dict[str, Any]] = {}
    for folder in detached_runs():
        about = folder.about
        found[str(about.get("run") or folder.folder.name)] = {
            "topology": about.get("topology") or " ".join(about.get("command", ())[1:2]),
            "state": folder.state,
            "run": about.get("run") or "",
            "process": about.get("pid") or "",
            "log": str(folder.folder / LOG),
        }
    for each in running():
        status = each.status
        state = "ending" if status.get("draining") else str(status["phase"])
        known = {"topology": each.name, "state": state, "run": each.run, "process": status["pid"], "log": ""}
        found[each.run] = {**known, "log": found.get(each.run, known)["log"]}
    return [found[name] for name in sorted(found)]
