"""Jars by which Spark reaches S3: hadoop-aws of its Hadoop and Amazon's client, in the user's cache: 0.7 GB, once for a machine.

python tests/shared/hadoop_aws.py    fetches them
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import maven

#: that of the Hadoop in the pyspark of the tests
HADOOP = "3.5.0"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "esault" / f"hadoop-aws-{HADOOP}"
#: those of its dependencies that Spark does not have
_JARS = "hadoop-aws,bundle,analyticsaccelerator-s3"
_POM = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>esault</groupId><artifactId>s3a-for-tests</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-aws</artifactId><version>{HADOOP}</version></dependency>
</dependencies></project>
"""


def jars() -> list[Path]:
    """Return them; empty where they have not been fetched."""
    return sorted(_CACHE.glob("*.jar"))


def fetch() -> None:
    """Fetch them, where they are not there."""
    if _CACHE.is_dir():
        return
    with maven.fetched_once(_CACHE) as made:
        maven.copy_jars(_POM, made, _JARS)


if __name__ == "__main__":
    fetch()
    print(_CACHE, file=sys.stderr)
