"""word_count.py, standard_library.py and rush_hour.py: what is counted is what a database counts."""

from __future__ import annotations

from pathlib import Path

from running import FOLDER, drained, module, rows

from esault.testing import LocalRuntime
from esault.topology.locate import locate

COUNT = "SELECT word, count(*) FROM (SELECT unnest(regexp_extract_all(lower(line), '\\S+')) AS word FROM lines) GROUP BY word"


def totals(pairs):
    """A word's highest total."""
    found = {}
    for word, total in pairs:
        found[word] = max(found.get(word, 0), total)
    return found


def lines_table(sql, lines):
    sql.execute("CREATE TABLE lines (line TEXT)")
    sql.executemany("INSERT INTO lines VALUES (?)", [[line] for line in lines])
    return sql


def test_words_of_files_are_counted_as_a_database_counts_them(sql, tmp_path):
    text = (FOLDER / "word_count.py").read_text() + (FOLDER / "tpch_q3.py").read_text()
    (tmp_path / "a.txt").write_text(text)
    local = drained("word_count.py", path=tmp_path / "*.txt", parallelism={"split": 2, "count": 3})
    wanted = dict(lines_table(sql, text.split("\n")).execute(COUNT).fetchall())
    assert totals(rows(local, "table")) == wanted
    assert len(wanted) > 200


def test_words_of_the_standard_library_are_counted_so_too(sql):
    names = [name for name in module("standard_library.py").files() if "/json/" in name]
    given = [(name, line) for name in names for line in Path(name).read_text("utf-8").split("\n")]
    local = LocalRuntime(locate(f"{FOLDER}/standard_library.py").build(), spouts={"lines": given})
    local.run_until_drained()
    wanted = dict(lines_table(sql, [line for _, line in given]).execute(COUNT).fetchall())
    assert totals(rows(local, "table")) == wanted
    assert sum(wanted.values()) > 1000


def test_the_rush_hour_looks_up_each_word(sql):
    local = drained("rush_hour.py", calm=5.0, rush=100.0, seconds=1.0)
    lines = [word for word, _ in module("rush_hour.py").words(160)]
    wanted = dict(lines_table(sql, lines).execute("SELECT line, count(*) FROM lines GROUP BY line").fetchall())
    assert totals(rows(local, "asked")) == wanted
    assert sum(wanted.values()) == 160
