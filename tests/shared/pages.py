"""How what the docs show is run: Python blocks in order, a page in one namespace; commands as they stand.

A block marked `python script` needs a file of its own, since every process of a run imports it: the page's blocks up
to there are written to one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import esault_command
import pytest
import quick_spark

#: what a command puts out, by its arguments
Analyze = Callable[[list[str]], str]
ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
#: those that ask Spark do so in the session of tests/spark/test_pages.py
BY_SPARK = ("pipeline.md", "report-with-spark.md")
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


def said(command: list[str], folder: Path) -> str:
    """What a command that goes well puts out."""
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_script(folder: Path, source: list[str], block: str) -> str:
    indented = "".join(f"    {line}\n" for line in block.splitlines())
    (folder / "page.py").write_text("\n".join(source) + '\n\nif __name__ == "__main__":\n' + indented)
    return said([sys.executable, "page.py"], folder)


def run_command(folder: Path, line: str) -> str:
    words = line.split()
    if words[0] != "esault" or ";" in line:
        return said(["sh", "-c", line], folder)
    code, out, err = esault_command.run(*words[1:], cwd=folder, env=environment(folder))
    assert code == 0, err
    return out


def run_console(folder: Path, block: str, analyze: Analyze | None = None) -> None:
    """Each `$ ...`, `esault` being this tree's; the lines below it must stand in its output, in order. Any number of seconds is "1.2 s"."""
    for command in re.split(r"^\$ ", block, flags=re.M)[1:]:
        line, *shown = command.splitlines()
        words = line.split()
        if analyze is not None and words[:2] == ["esault", "analyze"]:
            rest = shown_all = analyze(words[1:])
        else:
            rest = shown_all = run_command(folder, line)
        for part in shown:
            found = re.search(re.sub(r"\d+\\\.\d\\ s\b", r"\\d+\\.\\d\\ s", re.escape(part)), rest)
            assert found, (part, shown_all)
            rest = rest[found.end() :]


def fill(folder: Path) -> None:
    """What the pages take for granted: some texts, some events."""
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").write_text("the cat sat on the mat\nthe end\n")
    (folder / "texts" / "b.txt").write_text("a cat and a dog\n" * 20)
    (folder / "data").mkdir()
    (folder / "data" / "orders.jsonl").write_text('{"id": "1", "n": 2}\n')
    (folder / "data" / "payments.jsonl").write_text(
        '{"id": "1", "paid": 5, "shop": "n", "at": 1}\n{"id": "2", "paid": 1, "shop": "n", "at": 2}\n'
    )
    (folder / "events.jsonl").write_text('{"id": "1"}\n')


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, analyze: Analyze | None = None) -> None:
    """Run all of it in a folder. `analyze`: what `esault analyze` says to these arguments, in place of a command."""
    fill(folder)
    monkeypatch.chdir(folder)
    # `dont_inherit`: the pages are read as plain Python, as a user's file would be. A module, where values find their classes.
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    namespace = vars(module)
    namespace["__file__"] = str(folder / "page.py")
    (folder / "page.py").touch()  # whoever looks at the code of what was imported finds it
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
            run_console(folder, block, analyze)
