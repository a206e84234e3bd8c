"""Sinks in the box. Their constructors open nothing; `check` says clearly what cannot be written.

    SparkTable(path, columns)   a table for Spark, exactly once per row (needs esault[parquet])
      with primary_key=...      an upsert table: one row for each key, the newest
    Parquet(path, columns)      Parquet files for any reader (needs esault[parquet])
    KafkaSink(topic, servers)   messages of a topic (needs esault[kafka])
    JsonLines(path)             one JSON object per row, in one file
    Collect()                   rows kept for the caller

Rows appear when they are committed: every 50 ms or 10 000 rows, or with each checkpoint.
"""

from __future__ import annotations

from esault.sinks.collect import Collect, read_collected
from esault.sinks.json_lines import JsonLines
from esault.sinks.kafka_sink import KafkaSink
from esault.sinks.parquet import Parquet
from esault.sinks.spark_table import SparkTable

__all__ = ["Collect", "JsonLines", "KafkaSink", "Parquet", "SparkTable", "read_collected"]
