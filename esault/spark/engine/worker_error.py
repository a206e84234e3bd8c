"""The error that ends a topology in a worker of Spark's, and reaches the driver as text."""

from __future__ import annotations

from esault.spark.failure import BEGIN, END

__all__ = ["WorkerError"]


class WorkerError(Exception):
    """The end of the topology, for people, between marks by which the driver finds it in what Spark says of it."""

    BEGIN, END = BEGIN, END

    def __init__(self, text: str) -> None:
        super().__init__(f"{self.BEGIN}{text}{self.END}")
