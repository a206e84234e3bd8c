"""What the docs show is run, page by page: `shared/pages.py` says how. Pages that ask Spark: `tests/spark/test_pages.py`."""

from __future__ import annotations

import re

import depth
import pytest
from pages import BY_SPARK, PAGES, ROOT, run_page

#: a JVM with a Python for each task, for a topology of the kind that tests/spark/engine/ runs: in the deep run
DEEP = ("run-on-spark.md",)
RUN = [page for page in PAGES if page.name not in BY_SPARK and (depth.PROFILE == "deep" or page.name not in DEEP)]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_the_page_shows_runs(page, tmp_path, monkeypatch):
    run_page(page, tmp_path, monkeypatch)


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
