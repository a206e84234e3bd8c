"""What the docs show is run: Python blocks in order, a page in one namespace; commands as they stand.

A block marked `python script` needs a file of its own, since every process of a run imports it: the page's blocks up
to there are written to one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import depth
import pytest
import quick_spark

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
#: a JVM with a Python for each task, for a topology of the kind that tests/spark/engine/ runs: in the deep run
RUN = [page for page in PAGES if depth.PROFILE == "deep" or page.name != "run-on-spark.md"]
BLOCK = re.compile(r"^```(python script|python|console)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Kind, text, and the empty lines before it that let code be found where it stands on the page."""
    text = page.read_text()
    return [(m.group(1), m.group(2), "\n" * text.count("\n", 0, m.start(2))) for m in BLOCK.finditer(text)]


def environment(folder: Path) -> dict[str, str]:
    """A JVM among what it starts lives for seconds."""
    conf = folder / "spark conf"
    conf.mkdir(exist_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**quick_spark.environment(conf), "PATH": path, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What the pages take for granted: some texts, some events."""
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("the cat sat on the mat\nthe end\n")
    (tmp_path / "texts" / "b.txt").write_text("a cat and a dog\n" * 20)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.jsonl").write_text('{"id": "1", "n": 2}\n')
    (tmp_path / "data" / "payments.jsonl").write_text(
        '{"id": "1", "paid": 5, "shop": "n", "at": 1}\n{"id": "2", "paid": 1, "shop": "n", "at": 2}\n'
    )
    (tmp_path / "events.jsonl").write_text('{"id": "1"}\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_script(folder: Path, source: list[str], block: str) -> str:
    indented = "".join(f"    {line}\n" for line in block.splitlines())
    (folder / "page.py").write_text("\n".join(source) + '\n\nif __name__ == "__main__":\n' + indented)
    done = subprocess.run(
        [sys.executable, "page.py"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_console(folder: Path, block: str) -> None:
    """Each `$ ...`, `esault` being this tree's; the lines below it must stand in its output, in order. Any number of seconds is "1.2 s"."""
    for command in re.split(r"^\$ ", block, flags=re.M)[1:]:
        line, *shown = command.splitlines()
        words = line.split()
        done = subprocess.run(
            [sys.executable, "-m", *words] if words[0] == "esault" and ";" not in line else ["sh", "-c", line],
            cwd=folder,
            env=environment(folder),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        rest = done.stdout
        for part in shown:
            found = re.search(re.sub(r"\d+\\\.\d\\ s\b", r"\\d+\\.\\d\\ s", re.escape(part)), rest)
            assert found, (part, done.stdout)
            rest = rest[found.end() :]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_the_page_shows_runs(page, folder, monkeypatch):
    # `dont_inherit`: the pages are read as plain Python, as a user's file would be. A module, where values find their classes.
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    namespace = vars(module)
    namespace["__file__"] = str(folder / "page.py")
    source: list[str] = []
    named = re.search(r"this into a file `(\w+\.py)`", page.read_text())
    for kind, block, above in blocks(page):
        if kind == "python":
            source.append(block)
            if kind == "python" and 'if __name__ == "__main__":' not in block:
                (folder / (named[1] if named else "words.py")).write_text(
                    "\n".join(s for s in source if "LocalRuntime" not in s)
                )
            exec(compile(above + block, str(page), "exec", dont_inherit=True), namespace)
        elif kind == "python script":
            run_script(
                folder,
                [s for s in source if "LocalRuntime(" not in s],
                block.replace("    # in a script", "  # in a script"),
            )
        else:
            run_console(folder, block)


def test_all_blocks_are_of_a_kind_that_is_run():
    for page in PAGES:
        kinds = set(re.findall(r"^```([a-z][^\n]*)$", page.read_text(), re.M))
        assert kinds <= {"python", "python script", "console", "mermaid", "json", "toml"} | (
            {"diff"} if page.name == "extending.md" else {"py", "java"} if page.parent.name == "coming-from" else set()
        ), page


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_tests_that_the_docs_name_exist():
    names = {n for f in (ROOT / "tests").rglob("*.py") for n in re.findall(r"def (test_\w+)", f.read_text())}
    for page in PAGES:
        for name in re.findall(r"`(test_\w+)`", page.read_text()):
            assert name in names, f"{page}: {name}"
