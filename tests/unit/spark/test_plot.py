"""Pictures of report tables."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from esault.errors import UsageError
from esault.spark.plot import file_name, plot
from esault.spark.report import ReportTable

pytest.importorskip("matplotlib")


def report(name: str, kinds: tuple[str, ...], *rows: tuple[object, ...]) -> ReportTable:
    return ReportTable(name, tuple("abcdef"[: len(kinds)]), kinds, rows)


@pytest.mark.slow
def test_labels_make_bars_and_time_makes_lines(tmp_path: Path) -> None:
    moments = [datetime(2026, 1, 1, hour, tzinfo=timezone.utc) for hour in range(5)]
    made = [
        plot(report("top $words$", ("text", "number"), ("the", 3), ("a$b", None)), str(tmp_path / "new" / "plots")),
        plot(report("per hour", ("time", "number", "number"), *((m, 1, 2.5) for m in moments)), str(tmp_path)),
    ]
    for path in made:
        assert path is not None
        assert Path(path).read_bytes().startswith(b"\x89PNG")
    assert made[1] == str(tmp_path / "per-hour.png")


def test_what_has_nothing_to_draw_makes_no_picture(tmp_path: Path) -> None:
    for kinds, row in [(("text",), ("a",)), (("number", "number"), (1, 2)), (("number", "time"), (1, None))]:
        assert plot(report("x", kinds, row), str(tmp_path)) is None
    assert plot(report("x", ("text", "number")), str(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


def test_reports_whose_names_differ_have_files_of_their_own() -> None:
    names = ["a b", "a: b", "a/b", "../../b", "..", "words", "wörter"]
    files = [file_name(name) for name in names]
    assert len(set(files)) == len(files)
    assert not any("/" in file or file.startswith(".") for file in files)
    assert (files[0], files[5]) == ("a-b", "words")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match=r"file/x.png: the plot cannot be written"):
        plot(report("x", ("text", "number"), ("a", 1)), str(tmp_path / "file"))
