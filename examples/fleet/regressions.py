"""Finds sites that allocate more, or keep more alive, in one release than in the one before.

    spark-submit regressions.py TABLES --before 1.4.1 --after 1.4.2 [--least 0.2] [--output FOLDER]

TABLES is a folder that `et-trace tables --label RELEASE` has written, with many runs of each release. Runs differ anyway: a site has
regressed if its median over the runs of the new release is above all runs of the old one, by at least the share `--least`.
"""

import argparse

from pyspark.sql import SparkSession

QUESTION = """
with sums as (
    select
        t.label,
        o.run,
        coalesce(s.name, '(the VM or native code)') as allocated_at,
        c.name as class_name,
        sum(o.size) as bytes,
        coalesce(sum(o.size) filter (where o.death_tick is null), 0) as alive_bytes
    from objects o
    join trace t on t.run = o.run
    join classes c on c.run = o.run and c.class = o.class
    left join sites s on s.run = o.run and s.site = o.site
    where o.kind <> 'I' and t.label in (:before, :after)
    group by t.label, o.run, s.name, c.name
),
releases as (
    select
        label,
        allocated_at,
        class_name,
        count(*) as runs,
        percentile(bytes, 0.5) as median_bytes,
        max(bytes) as most_bytes,
        percentile(alive_bytes, 0.5) as median_alive,
        max(alive_bytes) as most_alive
    from sums
    group by label, allocated_at, class_name
)
select
    a.allocated_at,
    a.class_name,
    a.runs,
    cast(coalesce(b.median_bytes, 0) as bigint) as bytes_before,
    cast(a.median_bytes as bigint) as bytes_after,
    cast(coalesce(b.median_alive, 0) as bigint) as alive_before,
    cast(a.median_alive as bigint) as alive_after
from releases a
left join releases b
    on b.label = :before and b.allocated_at = a.allocated_at and b.class_name = a.class_name
where a.label = :after
    and (a.median_bytes > coalesce(b.most_bytes, 0) * (1 + :least)
        or a.median_alive > coalesce(b.most_alive, 0) * (1 + :least))
order by
    greatest(bytes_after - bytes_before, alive_after - alive_before) desc, allocated_at, class_name
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", help="folder of tables, on storage that all executors reach")
    parser.add_argument("--before", required=True, help="label of the old release")
    parser.add_argument("--after", required=True, help="label of the new release")
    parser.add_argument("--least", type=float, default=0.2, help="share by which a site must have grown")
    parser.add_argument("--output", help="folder for the answer, as CSV")
    arguments = parser.parse_args()

    spark = (
        SparkSession.builder.appName("regressions")
        .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        .getOrCreate()
    )
    for table in ["objects", "classes", "sites", "trace"]:
        frame = spark.read.option("mergeSchema", "true").parquet(f"{arguments.tables}/{table}")
        frame.createOrReplaceTempView(table)
    answer = spark.sql(
        QUESTION, args={"before": arguments.before, "after": arguments.after, "least": arguments.least}
    )
    if arguments.output:
        answer.write.mode("overwrite").option("header", "true").csv(arguments.output)
    else:
        answer.show(50, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
