"""The pages of the docs that ask Spark run in the session that is there: a command of their own would start one each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import in_process
import pytest
from pages import BY_SPARK, PAGES, ROOT, run_page


def analyze(arguments: list[str]) -> str:
    code, out, err = in_process.esault(*arguments)
    assert code == 0, err
    return out


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name in BY_SPARK], ids=lambda page: str(page.relative_to(ROOT))
)
def test_what_the_page_shows_runs(spark: Any, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, tmp_path, monkeypatch, analyze)
