"""Addresses as Spark's Hadoop has them, and whether this Spark can reach them."""

from __future__ import annotations

from typing import Any

from esault.errors import UsageError

__all__ = ["hadoop_url", "require_file_system"]


def hadoop_url(url: str) -> str:
    """Return an address under Hadoop's name of its store."""
    scheme, _, place = url.partition("://")
    return f"{'s3a' if scheme == 's3' else scheme}://{place}"


def require_file_system(spark: Any, url: str) -> None:
    """UsageError, with the remedy, where a session has no file system for such addresses."""
    from py4j.protocol import Py4JJavaError

    scheme = hadoop_url(url).partition("://")[0]
    hadoop = spark._jvm.org.apache.hadoop
    try:
        hadoop.fs.FileSystem.getFileSystemClass(scheme, spark._jsc.hadoopConfiguration())
    except Py4JJavaError:
        package = f"org.apache.hadoop:hadoop-aws:{hadoop.util.VersionInfo.getVersion()}"
        remedy = f"--conf spark.jars.packages={package}" if scheme == "s3a" else "its jar with --conf spark.jars=PATH"
        raise UsageError(f"this Spark has no file system for {scheme}://; give it {remedy}") from None
