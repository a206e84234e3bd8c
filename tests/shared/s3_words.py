"""Words counted on Spark with all that it keeps in S3: a topology, and a program that runs it, dies, goes on and asks Spark for a report.

python s3_words.py FOLDER JAR ...    prints what it found, as JSON
"""

from __future__ import annotations

import json
import sys
from typing import Any

from esault import Bolt, Topology, by_key, dead_letter, run, shuffle
from esault.errors import EsaultError
from esault.sinks import SparkTable
from esault.sources import Items

LINES = [
    f"the {word} sat on the {other}" for word in ("cat", "dog", "fox") for other in ("mat", "bed", "hat", "log")
] * 25


class Split(Bolt):
    def process(self, key: int, value: str) -> None:
        if key % 100 == 50:
            raise ValueError("a line of no use")
        for word in value.split():
            self.emit(word, 1)


class Count(Bolt):
    def __init__(self) -> None:
        self.total = 0

    def process(self, key: str, value: int) -> None:
        self.total += value

    def finish(self) -> None:
        self.emit(self.key, self.total)


def topology(out: str) -> Topology:
    t = Topology("words")
    lines = t.spout("lines", Items(list(enumerate(LINES))))
    words = lines.bolt("split", Split, grouping=shuffle(), on_error=dead_letter(f"{out}/dead.jsonl"))
    words.sink("words", SparkTable("s3://landed/words", {"word": str, "n": int}))
    words.bolt("count", Count, grouping=by_key()).sink(
        "counts", SparkTable("s3://landed/counts", {"word": str, "n": int})
    )
    return t


def reports(tables: Any) -> Any:
    return {"counts": tables["counts"].select("word", "n"), "words": tables["words"].groupBy("_run").count()}


def main(folder: str, *jars: str) -> None:
    import quick_spark

    from esault.spark import session
    from esault.spark.analyze import analyze, tables_in
    from esault.spark.engine import batch_size
    from esault.spark.engine.journal import Journal
    from esault.spark.spark_path import SparkPath

    finish = Journal.finish

    def dying(self: Any, epoch: int) -> None:
        if epoch == 1:
            raise OSError("gone behind the commit")
        finish(self, epoch)

    def count(**options: Any) -> Any:
        asked = {"engine": "spark", "checkpoint": 0.1, "state": "s3://state/words", **options}
        return run(topology, {"out": folder}, **asked)

    found: dict[str, Any] = {}
    batch_size.FIRST = batch_size.MOST = len(LINES) // 3  # three batches: the run that goes on has one of them
    conf = {**quick_spark.SETTINGS, "spark.jars": ",".join(jars)}
    with session("local[2]", conf={**conf, "spark.driver.extraJavaOptions": f"{quick_spark.JAVA} -Xss8m"}) as spark:
        place = SparkPath(spark, "s3a://state/files") / "one"
        found["absent"] = [place.write_absent(b"first"), place.write_absent(b"second"), place.read_text()]
        Journal.finish = dying  # type: ignore[method-assign]
        try:
            count(parallelism={"count": 2})
        except EsaultError as error:
            found["died"] = str(error)
        Journal.finish = finish  # type: ignore[method-assign]
        report = count(resume=True, parallelism={"count": 3})
        found["ended"] = [report.ended, report.checkpoints.resumed_from, report.units["count"].parallelism]
        found["reports"] = {name: table.rows for name, table in analyze(tables_in("s3://landed"), reports).items()}
    print(json.dumps(found, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
