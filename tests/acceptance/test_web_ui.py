"""The page of a run in a real browser: Chromium, headless."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import waiting

import esault
from esault.sources.dead_letter_files import DeadLetterFiles

pytestmark = pytest.mark.slow
MENDED = str(Path(__file__).with_name("mended.py"))
#: milliseconds between two looks at a page that is waited for
POLLING = 100
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser):
    """A page that fails the test for whatever its console or the policy of its scripts complains of."""
    wrong: list[str] = []
    made = browser.new_page(viewport={"width": 1280, "height": 900})
    made.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.set_default_timeout(1000 * waiting.PATIENCE)
    # Else it looks with each frame, and has the browser draw sixty of them a second for it.
    made.wait_for_function = functools.partial(made.wait_for_function, polling=POLLING)
    yield made
    made.close()
    # A run that has ended closes its server, also under a request that is on its way. A refusal is shown on the page, and
    # the browser notes it besides.
    expected = re.compile(r"Failed to load resource: (net::ERR_|the server responded with a status of 409)")
    assert not [text for text in wrong if not expected.match(text)]


def address(process):
    while True:
        line = process.stderr.readline()
        assert line, "it ended without a word of its page"
        found = re.search(r"web UI: (http://127\.0\.0\.1:\d+/\S*)", line)
        if found:
            return found[1]


def test_a_unit_is_split_on_the_page_and_its_keys_are_seen_to_move(command, page):
    command.start(
        "waiting", "--ui", "0", "--ui-control", "--policy", "none", out="out.jsonl", rows=1_000_000, rate=50.0
    )
    page.goto(address(command.process))
    page.wait_for_function("() => document.querySelector('#phase').textContent === 'running'")
    page.click('[data-unit="count"]')
    page.wait_for_function("() => document.querySelectorAll('#ring .arc').length === 1")
    ends = re.findall(r"([-\d.]+ [-\d.]+)(?=[ALZ])", page.get_attribute("#ring .arc", "d"))
    assert len(set(ends)) == 4, "an arc whose ends are in one place is none: the ring would have no hole"
    assert page.locator('[data-unit="count"] .cell').count() == 1
    page.wait_for_function("() => !document.querySelector('#ask').hidden")  # there are keys
    page.click("#state button")
    page.wait_for_selector("#states tbody tr")
    assert re.match(r"\d+ of \d+ keys, as they are now", page.text_content("#state-said"))
    page.fill("#key", page.text_content("#states tbody td"))
    page.click("#state button")
    page.wait_for_function("() => document.querySelector('#state-said').textContent === 'as it is now'")
    assert json.loads(page.text_content("#states tbody td.state"))
    page.fill("#width", "3")
    page.click("#scale button")
    page.wait_for_function(
        "() => new Set([...document.querySelectorAll('#ring .arc')].map(a => a.dataset.part)).size === 3"
    )
    page.wait_for_function("() => document.querySelector('#said').textContent.startsWith('1 → 3 sub-units')")
    page.wait_for_function("() => document.querySelectorAll('#changes tbody tr').length === 1")
    assert "1 → 3" in page.text_content("#changes tbody tr")
    page.wait_for_function("() => document.querySelector('#chart-rate canvas') !== null")
    tried = "document.querySelectorAll('#tried tbody tr').length"
    for _ in range(200):  # there is no load yet where the run has just begun, and the page says so
        page.click("#try")  # on the load so far, in a process of its own
        page.wait_for_function(
            f"() => !document.querySelector('#try').disabled && ({tried} || document.querySelector('#tried-said').textContent)"
        )
        if page.evaluate(tried):
            break
        said = page.text_content("#tried-said")
        assert "just begun" in said or "was given up" in said, said  # the second on a machine that does much else
        page.wait_for_timeout(100)
    assert page.text_content("#tried-said") == ""
    tried = page.eval_on_selector_all("#tried input", "boxes => boxes.map(b => b.dataset.policy)")
    assert tried[:2] == ["none", "auto"]
    page.check('#tried input[data-policy="dhalion"]')
    legend = page.eval_on_selector_all("#chart-tried .u-label", "labels => labels.map(l => l.textContent)")
    assert {"as it was", "none", "auto", "dhalion"} <= set(legend)
    widths = page.eval_on_selector_all(
        "#units tbody tr", "rows => rows.map(r => [r.cells[0].textContent, r.cells[2].textContent])"
    )
    assert dict(widths)["count"] == "3"
    assert page.locator('[data-unit="count"] .cell').count() == 3
    page.select_option("#quantile", "1")
    assert page.is_visible("#chart-p99 canvas")
    page.fill("#width", "0")  # the browser itself refuses it
    assert page.evaluate("() => document.querySelector('#width').checkValidity()") is False
    page.click("#drain")
    page.wait_for_function("() => document.querySelector('#phase').textContent === 'ended'")
    assert command.wait()[0] == 0


def test_dead_letters_are_seen_on_the_page_and_go_again(command, page):
    command.start(
        f"{MENDED}:topology", "--ui", "0", "--ui-control", "--policy", "none", "--checkpoint", "0.3", rows=20_000
    )
    page.goto(address(command.process))
    page.wait_for_selector("#dead tbody tr")
    row = page.text_content("#dead tbody tr")
    assert "is not known" in row
    page.click("#dead tbody tr button >> text=Show")
    assert "raise ValueError" in page.text_content("#dead-one")
    (command.folder / "mended").touch()
    page.click("#dead tbody tr button >> text=Send again")
    page.wait_for_function("() => document.querySelector('#dead-said').textContent === '1 sent again'")
    page.wait_for_function("() => document.querySelector('#dead-about').textContent.includes(' 1 of them sent again')")
    page.click("#send-all")
    page.wait_for_function("() => /^[0-9]{2,} sent again$/.test(document.querySelector('#dead-said').textContent)")
    for _ in range(50):  # some were written since the page had looked
        page.wait_for_timeout(300)
        if not page.evaluate("document.querySelectorAll('#dead tbody tr').length"):
            break
        # A click of playwright's would wait for the button, which goes away when the last one is sent.
        page.evaluate("document.querySelector('#send-all').click()")
    page.wait_for_function("() => document.querySelectorAll('#dead tbody tr').length === 0")
    dead = list(DeadLetterFiles(command.folder / "dead.jsonl").read())
    assert all(each.sent for each in dead)
    assert page.text_content("#dead-about").startswith(f"{len(dead)} dead letters, {len(dead)} of them sent again")
    page.wait_for_function("() => document.querySelectorAll('#checkpoints tbody tr').length > 2")
    newest = [
        int(n)
        for n in page.eval_on_selector_all("#checkpoints tbody tr", "rows => rows.map(r => r.cells[0].textContent)")
    ]
    assert newest == sorted(newest, reverse=True)
    assert page.text_content("#sinks tbody tr").startswith("outJsonLinestotalout")
    page.click("#drain")
    page.wait_for_function("() => document.querySelector('#phase').textContent === 'ended'")
    assert command.wait()[0] == 0
    landed = Counter(row["value"][0] for row in esault.read(command.folder / "out").to_pylist())
    assert set(landed.values()) == {1}
    assert {value for each in dead for _, value in each.rows()} <= set(landed)


def test_all_runs_and_reports_are_on_one_page(command, page, tmp_path):
    command.start("waiting", "--policy", "none", out="out.jsonl", rows=1_000_000, rate=50.0)
    command.running()
    command.scale("count", 2)
    report = tmp_path / "report.json"
    report.write_text(
        '{"topology": "old", "ended": "drained", "seconds": 5, "units": {"count": {"tuples_in": 7, "tuples_out": 0, '
        '"parallelism": [[0, 1], [2, 4]], "hosts": {"7": "a"}}}, "checkpoints": {"taken": 3, "bytes": 1200, "newest": 3, '
        '"last_seconds": 0.004, "directory": ".esault/old"}}'
    )
    shown = subprocess.Popen(
        [sys.executable, "-m", "esault", "ui", "--port", "0", str(report)], stdout=subprocess.PIPE, text=True
    )
    try:
        url = re.search(r"http\S+", shown.stdout.readline())[0]
        page.goto(url)
        page.wait_for_function("() => document.querySelectorAll('#runs option').length >= 2")
        page.select_option("#runs", command.status()["run"])  # others of this user may run
        page.wait_for_function("() => state.snapshot !== null")
        page.wait_for_function("() => document.querySelector('#phase').textContent === 'running'")
        assert page.is_hidden("#stop")  # only to be looked at
        # the past of a run that began without a page, and what follows
        page.wait_for_function("() => document.querySelectorAll('#changes tbody tr').length === 1")
        assert "1 → 2" in page.text_content("#changes tbody tr")
        page.wait_for_function("() => state.windows.some(w => w.units.count?.[0] > 0 && w.units.count[3] === 2)")
        assert page.evaluate("() => state.windows[0].units.count[3]") == 1
        assert page.is_visible("#chart-rate canvas") and page.is_hidden("#what-if")
        page.wait_for_function("() => /^[1-9]/.test(document.querySelector('#sinks tbody tr').cells[4].textContent)")
        page.select_option("#runs", str(report))
        page.wait_for_function("() => document.querySelector('#name').textContent === 'old'")
        assert page.text_content("#phase") == "drained"
        assert page.is_visible("#chart-width canvas") and page.is_hidden("#chart-rate")
        assert page.evaluate("() => state.windows.map(w => [w.t, w.units.count[3]])") == [[0, 1], [2, 4], [5, 4]]
        assert page.is_hidden("#ask") and page.is_hidden("#ring")
        assert page.text_content("#checkpoints-said").startswith("3 taken, 1200 B, the newest in 4 ms")
        assert page.text_content("#parts tbody tr") == "7a"  # where it was
        assert page.is_hidden("#checkpoints")
        assert page.text_content('[data-unit="count"]').startswith("countbolt × 47 in")  # no rate: it is over
    finally:
        shown.terminate()
        assert shown.wait(20) == 0
        shown.stdout.close()
    command.process.terminate()
    command.wait()
