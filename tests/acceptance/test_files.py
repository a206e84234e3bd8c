"""Files of columns on real processes: scaled live, killed, files added, the run killed and resumed; each row lands once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import from_files
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(from_files.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
ROWS, GROUP = 2000, 250
KINDS = ("csv", "parquet", "arrow")


class Files:
    """Gets files of each kind, and knows which rows must come of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        for kind in KINDS:
            (folder / kind).mkdir()

    def more(self, files=2):
        for _ in range(files):
            for kind in KINDS:
                name = f"{kind}{self.count}"
                numbers = range(ROWS)
                parts = [f"{name}.{n // GROUP}" for n in numbers]  # rows of a group stay in order, and groups may not
                table = pa.table({"file": [name] * ROWS, "n": numbers, "part": parts})
                begun = self.folder / kind / f".{self.count}"
                if kind == "csv":
                    pyarrow.csv.write_csv(table, begun)
                elif kind == "parquet":
                    pyarrow.parquet.write_table(table, begun, row_group_size=GROUP)
                else:
                    with pa.ipc.new_file(str(begun), table.schema) as out:
                        out.write_table(table, max_chunksize=GROUP)
                begun.rename(begun.with_name(f"{self.count}.{kind}"))
            self.count += 1

    def landed(self):
        path = self.folder / "out.jsonl"
        return path.read_text().count("\n") if path.exists() else 0

    @property
    def wanted(self):
        return self.count * ROWS * len(KINDS)


def test_each_row_of_each_file_lands_once(command, tmp_path):
    files = Files(tmp_path)
    files.more(4)
    command.start(PLACE, *OPTIONS)
    command.running()
    command.until(lambda: files.landed() > 0)
    command.until(lambda: all(command.scaled(kind, 3) for kind in KINDS))
    files.more()
    for number, kind in enumerate(KINDS, 1):
        command.processes(f"{kind}/")[0].kill()
        command.until(lambda number=number: command.status().get("restores", 0) >= number)
        command.until(lambda: command.status().get("phase") == "running")
    files.more()
    command.until(lambda: all(command.scaled(kind, 1) for kind in KINDS))
    kill_run(command)
    files.more()
    command.start(PLACE, *OPTIONS, "--resume", *[f"--parallelism={kind}=2" for kind in KINDS])
    command.until(lambda: files.landed() >= files.wanted)
    code, _, err = command.stop()
    assert code == 0, err
    rows = Counter(tuple(json.loads(line)["value"]) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert rows == Counter((f"{kind}{file}", n) for kind in KINDS for file in range(files.count) for n in range(ROWS))
