"""The cost of the web UI to a run: processor seconds of all its processes with a page open in a browser, and without the option.

python -m bench.page --out DIR [--quick] [--runs N]

Workload A as fast as it goes, in pairs in turns. Processor time of the run's processes alone is compared, not the browser's, and not the
rate: on a machine that does other things as well it says what the run itself had to do. That of sub-units differs from run to run by more
than a page costs, so what the command and the driver take is looked at by itself.
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

WITHOUT, WITH = "without", "with a page open"


def _run(load: Load, browser: Any) -> Run:
    """One run; with a page of the browser where there is one."""
    words = [sys.executable, "-m", "bench.page.metered", sys.executable, "-m", "bench.kit.esault_run"]
    arguments = ["words", str(load.path), str(load.passes), "--policy", "none", *(["--page"] if browser else [])]
    began = time.monotonic()
    process = subprocess.Popen(
        [*words, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    page = None
    if browser is not None:
        found = next(filter(None, (re.search(r"web UI: (\S+)", line) for line in process.stderr)))
        page = browser.new_page()
        page.goto(found[1])
    out, error = process.communicate(timeout=600)
    if page is not None:
        windows = page.evaluate("() => state.windows.length")
        page.close()
        if not windows:
            raise RuntimeError("the page has shown nothing")
    if process.returncode:
        raise RuntimeError(error[-4000:])
    result, seconds = out.splitlines()[-2:]
    run: Run = json.loads(result)
    run["processor_seconds"] = json.loads(seconds)
    run["wall_seconds"] = time.monotonic() - began
    run["tuples_per_second"] = load.tuples / max(1e-9, run["last"] - run["first"])
    return run


def _of_both(run: Run) -> float:
    """Seconds of processor time that the command and the driver take in a second."""
    seconds: dict[str, float] = run["processor_seconds"]
    return (seconds["command"] + seconds["driver"]) / float(run["wall_seconds"])


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        load = make("sentences", 200_000 if arguments.quick else 2_000_000, folder)
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        timed = in_turns(
            arguments.runs or (2 if arguments.quick else 8),
            {WITHOUT: lambda: _run(load, None), WITH: lambda: _run(load, browser)},
            lambda run: ", ".join(f"{name} {each:.2f}" for name, each in run["processor_seconds"].items()),
        )
        browser.close()
    result: dict[str, Any] = {"machine": facts(), "load": load.facts()}
    lines, bars = [], []
    for part in ("all", "command", "driver"):
        seconds = {name: [run["processor_seconds"][part] for run in runs] for name, runs in timed.items()}
        result[part] = {name: {**summary(each), "each": each} for name, each in seconds.items()}
        bars += [Bar.of(f"{part}, {name}", summary(each)) for name, each in seconds.items()]
        lines += [f"{part}, {name}: {summary(each)['median']:.2f} processor seconds" for name, each in seconds.items()]
    # The page is served by the command, and the driver makes the timeline for it: no other process does anything for it. Both do so many
    # times a second, however fast the run is: so it is their time in a second that is compared.
    own = [_of_both(b) - _of_both(a) for a, b in zip(timed[WITHOUT], timed[WITH])]
    whole = summary([run["processor_seconds"]["all"] / run["wall_seconds"] for run in timed[WITHOUT]])["median"]
    share = 100 * summary(own)["median"] / whole
    result |= {"more_in_a_second": {**summary(own), "each": own}, "all_in_a_second": whole, "more_percent": share}
    each = ", ".join(f"{1000 * more:+.1f}" for more in own)
    lines.append(f"more in command and driver, ms of processor a second: {each}")
    lines.append(f"the median is {share:+.2f} % of what all processes take, {1000 * whole:.0f} ms a second")
    write(arguments.out, result, lines, {"Processor seconds": bars}, "s")


if __name__ == "__main__":
    main()
