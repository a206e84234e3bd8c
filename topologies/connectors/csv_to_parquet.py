"""A folder of CSV files, checked and typed, into Parquet.

Shows `CsvFiles` and `Parquet`. Out come `out/sales`, Parquet with typed columns, for pandas, Polars, DuckDB and Spark, and in
`out/bad.jsonl` the rows whose price is below nothing. Files are read side by side: `--parallelism sales=2`, or `esault scale sales 2`
while it runs. Needs no server.

    mkdir -p in && printf 'item,pieces,price,day\ntea,2,2.50,2026-02-03\n' > in/1.csv
    esault run topologies/connectors/csv_to_parquet.py --checkpoint 1
    python -c "import pandas; from esault.sinks.landing import parts; print(pandas.read_parquet(parts('out/sales')))"
"""

from datetime import date
from decimal import Decimal

from esault import Topology
from esault.sinks import JsonLines, Parquet
from esault.sources import CsvFiles

__all__ = ["topology"]

TYPES = {"pieces": int, "price": Decimal, "day": date.fromisoformat}
COLUMNS = {"item": str, "pieces": int, "cents": int, "day": date}


def priced(sale):
    """The sale in cents."""
    return {"pieces": sale["pieces"], "cents": int(sale["price"] * 100), "day": sale["day"]}


def topology(folder: str = "in", out: str = "out", name: str = "csv_to_parquet") -> Topology:
    """Return it; it ends with the files that are there."""
    t = Topology(name)
    sales = t.spout("sales", CsvFiles(folder, key="item", types=TYPES), max_parallelism=8)
    kinds = sales.split({"good": lambda sale: sale["price"] >= 0})
    cents = kinds["good"].map(priced)
    cents.sink("table", Parquet(f"{out}/sales", COLUMNS))
    kinds["rest"].sink("bad", JsonLines(f"{out}/bad.jsonl"))
    return t
