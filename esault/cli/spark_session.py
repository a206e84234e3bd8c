"""A session of Spark for a command that needs one only where `--master` asks for it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from esault.cli.named_values import spark_conf
from esault.errors import UsageError

__all__ = ["say", "spark_session"]


@contextlib.contextmanager
def spark_session(name: str, master: str | None, conf: tuple[str, ...]) -> Iterator[Any]:
    """Give a session on a cluster for the time of the block; None without `master`. Raises UsageError."""
    asked = spark_conf(conf)
    if master is None:
        if asked:
            raise UsageError("--conf is a setting of Spark, which does nothing here without --master")
        yield None
        return
    from esault.spark.session import session

    with session(master, name=name, say=say, conf=asked) as spark:
        yield spark


def say(text: str) -> None:
    """Tell the user what takes time, beside the command's own output."""
    print(text, file=sys.stderr, flush=True)
