"""Asks DuckDB and Spark the same questions, and compares the answers: compare.py TABLES QUERIES [SQL of more questions…].

Spark runs in local mode, with one session for all, or as SPARK_MASTER says (local-cluster[2,1,1024]: two executors with a core each). Exits with 1 if answers differ; prints a line for each question."""

import decimal
import math
import os
import pathlib
import re
import sys
import time

import duckdb
from pyspark.sql import SparkSession

tables = pathlib.Path(sys.argv[1]).resolve()
queries = sorted(pathlib.Path(sys.argv[2]).glob("*.sql"))
names = sorted(folder.name for folder in tables.iterdir() if folder.is_dir() and folder.name[0] not in "._")

spark = (
    SparkSession.builder.master(os.environ.get("SPARK_MASTER", "local[2]"))
    # Whatever it broadcasts and returns goes through this process: the 1 GB that it takes by itself is not enough for the tables of 36 runs.
    .config("spark.driver.memory", "3g")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "4")
    # Names of runs are names, whatever they look like.
    .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
duck = duckdb.connect()
for name in names:
    spark.read.option("mergeSchema", "true").parquet(str(tables / name)).createOrReplaceTempView(name)
    duck.execute(
        f"create view {name} as select * from read_parquet('{tables}/{name}/*/*.parquet', "
        "hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
    )


def plain(value):
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def same(one, other):
    if isinstance(one, bool) or isinstance(other, bool) or not all(isinstance(v, (int, float)) for v in (one, other)):
        return one == other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=0.11 if isinstance(one, float) else 0)


wrong = 0
for path in queries:
    # All rows: a limit would hide some.
    text = re.sub(r"/\*:top\*/\d+", "1000000", path.read_text())
    begin = time.monotonic()
    cursor = duck.execute(text)
    columns = [column[0] for column in cursor.description]
    ducks = [tuple(map(plain, row)) for row in cursor.fetchall()]
    between = time.monotonic()
    answer = spark.sql(text)
    sparks = [tuple(map(plain, row)) for row in answer.collect()]
    end = time.monotonic()
    difference = ""
    if columns != answer.columns:
        difference = f"columns {columns} and {answer.columns}"
    elif len(ducks) != len(sparks):
        difference = f"{len(ducks)} rows and {len(sparks)}"
    else:
        # Names may sort otherwise; what is in the rows may not differ.
        key = lambda row: tuple((v is None, str(v) if not isinstance(v, float) else "") for v in row)
        for one, other in zip(sorted(ducks, key=key), sorted(sparks, key=key)):
            if not all(map(same, one, other)):
                difference = f"{one} and {other}"
                break
    wrong += bool(difference)
    print(
        f"{path.stem:<18} {len(ducks):>8} rows  DuckDB {between - begin:7.2f} s  Spark {end - between:7.2f} s  "
        f"{difference or 'same'}",
        flush=True,
    )
spark.stop()
sys.exit(1 if wrong else 0)
