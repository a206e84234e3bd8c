"""Spark's own file of settings, as Java's properties have it."""

from __future__ import annotations

import pytest

from esault.spark.spark_defaults import settings_folder, spark_defaults


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("spark.master  spark://h:7077", {"spark.master": "spark://h:7077"}),
        ("spark.a=b=c", {"spark.a": "b=c"}),
        (" spark.a : b c  ", {"spark.a": "b c"}),
        ("spark.a\tb", {"spark.a": "b"}),
        ("# spark.a b", {}),
        ("", {}),
        ("spark.a", {}),
        ("spark.a ", {}),
        ("other.a b", {}),
        ("spark.a 1\nspark.a 2", {"spark.a": "2"}),
        ("spark.ü ü", {"spark.ü": "ü"}),
    ],
)
def test_lines_are_settings(tmp_path, line, found):
    (tmp_path / "spark-defaults.conf").write_text(line, encoding="utf-8")
    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == found


def test_a_file_in_another_encoding_is_read_as_far_as_it_can_be(tmp_path):
    (tmp_path / "spark-defaults.conf").write_bytes(b"# f\xfcr alle\nspark.master yarn\n")
    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {"spark.master": "yarn"}


def test_the_folder_is_the_one_that_is_named_else_that_of_the_installation(tmp_path):
    assert settings_folder({}) is None and settings_folder({"SPARK_HOME": "", "SPARK_CONF_DIR": ""}) is None
    assert settings_folder({"SPARK_HOME": "/s"}) == "/s/conf"
    assert settings_folder({"SPARK_HOME": "/s", "SPARK_CONF_DIR": "/c"}) == "/c"


def test_no_file_is_no_settings(tmp_path):
    for place in ({}, {"SPARK_HOME": str(tmp_path)}, {"SPARK_CONF_DIR": str(tmp_path / "none")}):
        assert spark_defaults(place) == {}
    (tmp_path / "spark-defaults.conf").mkdir()
    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {}
