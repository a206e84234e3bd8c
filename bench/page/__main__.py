"""The cost of the web UI to a run: what is done for a page that is open in a browser, in processor seconds.

python -m bench.page --out DIR [--quick] [--runs N]

Workload A as fast as it goes, with the page open in Chromium. All that command and driver do for the page alone is metered by
the processor time of its threads, so that a machine which does other things as well does not change it much; it is compared
with what all processes of the run take. The browser's own time does not count. Not metered are encoding and decoding of one message
a second from driver to command: 0.02 ms each.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import ROOT, Run, in_turns, summary
from bench.kit.result import Bar, write
from bench.workloads.loads import Load, make

__all__ = ["main"]

WITH = "with a page open"


def _run(load: Load, browser: Any) -> Run:
    """One run with a page of the browser."""
    words = [sys.executable, "-m", "bench.page.metered", sys.executable, "-m", "bench.page.metered_run"]
    arguments = ["words", str(load.path), str(load.passes), "--policy", "none", "--page"]
    began = time.monotonic()
    process = subprocess.Popen(
        [*words, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    found = next(filter(None, (re.search(r"web UI: (\S+)", line) for line in process.stderr)))
    page = browser.new_page()
    page.goto(found[1])
    out, error = process.communicate(timeout=600)
    windows = page.evaluate("() => state.windows.length")
    page.close()
    if not windows:
        raise RuntimeError("the page has shown nothing")
    if process.returncode:
        raise RuntimeError(error[-4000:])
    result, parts, seconds = out.splitlines()[-3:]
    run: Run = json.loads(result)
    run["processor_seconds"], run["parts"] = json.loads(seconds), json.loads(parts)
    run["wall_seconds"] = time.monotonic() - began
    run["tuples_per_second"] = load.tuples / max(1e-9, run["last"] - run["first"])
    run["page_seconds"] = sum(each for each, _ in run["parts"].values())
    run["percent"] = 100 * run["page_seconds"] / run["processor_seconds"]
    return run


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        load = make("sentences", 200_000 if arguments.quick else 2_000_000, folder)
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        runs = in_turns(
            arguments.runs or (2 if arguments.quick else 8),
            {WITH: lambda: _run(load, browser)},
            lambda run: f"{run['percent']:.2f} %",
        )[WITH]
        browser.close()
    percent = [run["percent"] for run in runs]
    rate = [1000 * run["page_seconds"] / run["wall_seconds"] for run in runs]
    parts = {
        name: summary([1000 * run["parts"][name][0] / run["wall_seconds"] for run in runs]) for name in runs[0]["parts"]
    }
    whole = [run["processor_seconds"] for run in runs]
    result: dict[str, Any] = {"machine": facts(), "load": load.facts(), "parts_ms_a_second": parts}
    for name, values in (("percent", percent), ("ms_a_second", rate), ("all_processor_seconds", whole)):
        result[name] = {**summary(values), "each": values}
    lines = [f"{name}: {each['median']:.2f} ms of processor a second" for name, each in parts.items()]
    by_run = ", ".join(f"{share:.2f}" for share in percent)
    lines.append(
        f"for the page: {summary(rate)['median']:.1f} ms a second, {summary(percent)['median']:.2f} % of what all processes of the "
        f"run take, {summary(whole)['median']:.1f} processor seconds; by run: {by_run} %"
    )
    bars = [Bar.of(name, each) for name, each in parts.items()]
    write(arguments.out, result, lines, {"Processor time for the page": bars}, "ms a second")


if __name__ == "__main__":
    main()
