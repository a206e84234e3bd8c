from __future__ import annotations

import depth
import pytest

from bench.engines.answers import answer, difference
from bench.engines.data import make, missing_data
from bench.engines.spark import SQL, found, tables


@pytest.mark.parametrize("name", depth.chosen(SQL, ("tpch_q3",)))
def test_plain_spark_sql_answers_what_a_database_answers(spark, name, tmp_path):
    pytest.importorskip("duckdb")
    if why := missing_data(name):
        pytest.skip(why)
    data = make(name, tmp_path / "data", 0.01)
    right = answer(name, data.folder)
    tables(spark, data)
    assert difference(right, found(spark, data)) == (sum(map(len, right.values())), None)
