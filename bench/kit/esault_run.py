"""One run of a topology of `bench/` on actors, in a process of its own; prints one line of JSON.

python -m bench.kit.esault_run words LOAD PASSES [--sink table] [--rate R] [--set NAME=VALUE ...]
python -m bench.kit.esault_run partial LOAD PASSES [--kind rows] [--parallel N]
python -m bench.kit.esault_run numbers KEYS PASSES [--kind rows|numpy|arrow] [--parallel N]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.kit.quiet_view import QuietView
from esault.elasticity.policy import DEFAULT, NONE, POLICIES
from esault.elasticity.scaling import EVERY_UNIT
from esault.messages.settings import Settings
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.topology.locate import locate
from esault.ui.web_option import web_ui

__all__ = ["TOPOLOGIES", "run", "setting", "settings_of"]

WORKLOADS = Path(__file__).parents[1] / "workloads"
#: name -> its file there
TOPOLOGIES = {
    **dict.fromkeys(("words", "sums", "paced"), "topologies.py"),
    **dict.fromkeys(("words_batch", "sums_batch"), "batch_topologies.py"),
    **dict.fromkeys(("partial", "numbers"), "column_topologies.py"),
}


def setting(text: str) -> tuple[str, Any]:
    """`NAME=VALUE` as a field of Settings, in its type. Raises ValueError."""
    name, equals, value = text.partition("=")
    defaults = asdict(Settings())
    if not equals or name not in defaults:
        raise ValueError(f"{text!r} is no setting; write NAME=VALUE with one of: {', '.join(defaults)}")
    kind = bool if defaults[name] is None else type(defaults[name])  # None: yes or no, as the runtime thinks fit
    return name, value.lower() in ("1", "true", "yes") if kind is bool else kind(value)


def settings_of(parser: argparse.ArgumentParser, texts: Sequence[str]) -> Settings:
    """Settings as `--set NAME=VALUE` gives them, the others as `esault run` has them; ends the command where one is none."""
    try:
        return Settings(**{"chaining": True, **dict(setting(text) for text in texts)})
    except ValueError as error:
        parser.error(f"--set: {error}")


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("topology", choices=list(TOPOLOGIES))
    parser.add_argument("load")
    parser.add_argument("passes", type=int)
    parser.add_argument("--sink", choices=["counted", "table"])
    parser.add_argument("--rate", type=float)
    parser.add_argument("--kind", choices=["rows", "columns", "numpy", "arrow"])
    parser.add_argument("--parallel", type=int, metavar="N")
    parser.add_argument("--policy", default=DEFAULT, choices=[*POLICIES.names(), NONE], help="of all units")
    parser.add_argument("--keep", metavar="DIR", help="where the table and the state are written, to stay")
    parser.add_argument("--page", action="store_true", help="with the web UI, on a port that it says on standard error")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    settings = settings_of(parser, arguments.set)
    params: dict[str, Any] = {"load": arguments.load, "passes": arguments.passes}
    given = {"sink": arguments.sink, "rate": arguments.rate, "kind": arguments.kind, "p": arguments.parallel}
    params |= {name: value for name, value in given.items() if value}
    with contextlib.ExitStack() as stack:
        folder = arguments.keep or stack.enter_context(tempfile.TemporaryDirectory())
        out = Path(folder) / "out"
        place = locate(f"{WORKLOADS / TOPOLOGIES[arguments.topology]}:{arguments.topology}")
        state = Path(folder) / "state" if settings.delivery == "eo" else None
        view = stack.enter_context(web_ui(QuietView(), "0" if arguments.page else None))
        report = Session(
            Request(
                place,
                {**params, "out": str(out)},
                settings=settings,
                policies={EVERY_UNIT: arguments.policy},
                view=view,
                state=state,
            )
        ).run()
        seen = [json.loads(line) for line in out.read_text().splitlines()]
    filled = [s for s in seen if s["rows"]]
    result: dict[str, Any] = {
        "rows": sum(s["rows"] for s in filled),
        "first": min(s["first"] for s in filled),
        "last": max(s["last"] for s in filled),
        "read": sum(report.units[name].tuples_out for name in ("lines", "records", "numbers") if name in report.units),
        "latency_ms": asdict(report.end_to_end_ms),
        "replayed": report.roots.replayed,
        "busy_seconds": {name: unit.busy_seconds for name, unit in report.units.items()},
        "settings": asdict(settings),
    }
    if any(s["final"] is not None for s in filled):
        result["final"] = {key: value for s in filled for key, value in s["final"].items()}
    print(json.dumps(result))


if __name__ == "__main__":
    run()
