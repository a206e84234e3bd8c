"""The work that `sales.py` asks of `esault analyze`, as one would write it in plain PySpark.

python plain.py LANDED INTO MEMORY
"""

from __future__ import annotations

import glob
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

landed, into, memory = sys.argv[1:]
builder = SparkSession.builder.master("local[*]").appName("plain").config("spark.driver.memory", memory)
spark = builder.config("spark.sql.session.timeZone", "UTC").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.read.parquet(*sorted(glob.glob(f"{landed}/*.parquet"))).dropDuplicates(["_run", "_id"])
bad = f.col("price").isNull() | (f.col("price") < 0)
fine = rows.where(~bad).withColumn("date", f.to_date("_time"))
fine.write.partitionBy("date").parquet(f"{into}/clean")
columns = f.to_json(f.struct(*rows.columns)).alias("row")
rows.where(bad).select(f.lit("not as expected: a price").alias("reason"), columns).write.parquet(f"{into}/quarantine")
clean = spark.read.parquet(f"{into}/clean")
best = clean.groupBy(f.col("user").alias("item")).agg(f.count("*").alias("n")).orderBy(f.desc("n"), "item").limit(100)
best.write.parquet(f"{into}/best")
spark.stop()
