"""What Spark raises, and what is said of it."""

from __future__ import annotations

import logging

import pytest

from esault.spark.failure import said, told_once


def test_a_mistake_in_sql_is_said_without_the_plans_below_it() -> None:
    text = (
        "[UNRESOLVED_COLUMN] `dai` cannot be resolved; line 1 pos 0;\n'Filter ('dai = 2026-01-02)\n+- Project [day#17]"
    )
    assert said(Exception(text)) == "[UNRESOLVED_COLUMN] `dai` cannot be resolved; line 1 pos 0"
    assert said(Exception("disk full\nCaused by: quota\n\tat java.io")) == "disk full\nCaused by: quota"


@pytest.mark.parametrize("name", ["DataFrameQueryContextLogger", "SQLQueryContextLogger"])
def test_pyspark_does_not_log_what_it_raises_within_a_session(name: str) -> None:
    from pyspark.logger import PySparkLogger

    said: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, handler = PySparkLogger.getLogger(name), Handler()
    level = logger.level
    logger.addHandler(handler)
    try:
        with told_once():
            logger.exception("a column cannot be resolved", errorClass="UNRESOLVED_COLUMN")
        assert (said, logger.level) == ([], level)
        logger.exception("later", errorClass="UNRESOLVED_COLUMN")
        assert said == ["later"]
    finally:
        logger.removeHandler(handler)


def test_ctrl_c_within_a_call_of_java_is_not_logged() -> None:
    def logged(path: str) -> bool:
        record = logging.LogRecord("root", logging.ERROR, path, 1070, "KeyboardInterrupt while sending", (), None)
        return bool(logging.getLogger().filter(record))

    with told_once():
        assert not logged("/site-packages/py4j/java_gateway.py")
        assert logged("/home/me/words.py")
    assert logged("/site-packages/py4j/java_gateway.py")
