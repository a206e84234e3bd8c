"""Addresses under the names that Hadoop has for their stores."""

from __future__ import annotations

from esault.spark.file_system import hadoop_url


def test_s3_is_s3a_and_others_keep_their_names() -> None:
    assert hadoop_url("s3://bucket/s3://x") == "s3a://bucket/s3://x"
    for url in ("s3a://bucket/x", "hdfs://name:8020/x", "gs://bucket"):
        assert hadoop_url(url) == url
