"""Files of rows, compared whatever their order."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from esault.shadow.comparison import compare

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=30)


def written(path, rows):
    path.write_text("".join(json.dumps({"key": key, "value": value}) + "\n" for key, value in rows))
    return path


@given(first=ROWS, shadow=ROWS)
def test_the_rows_that_one_has_more_often_are_those_of_a_plain_count(tmp_path_factory, first, shadow):
    folder = tmp_path_factory.mktemp("rows")
    found = compare(written(folder / "first", first), written(folder / "shadow", shadow), limit=99)
    more, less = Counter(first) - Counter(shadow), Counter(shadow) - Counter(first)
    assert (found.first, found.shadow) == (len(first), len(shadow))
    assert found.rows == more.total() + less.total()
    assert found.keys == len({key for key, _ in [*more, *less]})
    assert found.same == (more == less == Counter())
    shown = [Counter(json.loads(line)["value"] for pair in found.shown.values() for line in pair[i]) for i in (0, 1)]
    for values, wanted in zip(shown, (more, less)):
        assert values == Counter(value for _, value in wanted.elements())


def test_rows_of_few_keys_are_shown_and_a_file_that_is_not_there_has_none(tmp_path):
    found = compare(written(tmp_path / "first", [(n, 0) for n in range(50)]), tmp_path / "shadow", limit=3)
    assert (found.rows, found.keys, list(found.shown)) == (50, 50, ["0", "1", "2"])
    assert found.shown["0"] == (['{"key": 0, "value": 0}'], [])
