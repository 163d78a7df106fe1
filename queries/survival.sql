-- Which percentage of the objects of each class survives the allocation of 64 KiB, 1 MiB, 16 MiB and 256 MiB?
-- Objects born too late are left out: percent_1m covers those after which at least 1 MiB was allocated. Classes with the most bytes.
with judged as (
    select
        o.run,
        o.class,
        o.size,
        o.death_tick is null as is_alive,
        t.end_bytes - o.birth_bytes as room,
        coalesce(o.death_bytes, t.end_bytes) - o.birth_bytes as age
    from objects o
    join trace t on t.run = o.run
    where o.kind <> 'I' and t.has_deaths
)
select
    j.run,
    c.name as class_name,
    count(*) as objects,
    sum(j.size) as bytes,
    round(avg(cast(case when j.age >= 65536 then 100 else 0 end as double)) filter (where j.room >= 65536), 1) as percent_64k,
    round(avg(cast(case when j.age >= 1048576 then 100 else 0 end as double)) filter (where j.room >= 1048576), 1) as percent_1m,
    round(avg(cast(case when j.age >= 16777216 then 100 else 0 end as double)) filter (where j.room >= 16777216), 1) as percent_16m,
    round(avg(cast(case when j.age >= 268435456 then 100 else 0 end as double)) filter (where j.room >= 268435456), 1) as percent_256m,
    round(avg(cast(case when j.is_alive then 100 else 0 end as double)), 1) as percent_at_the_end
from judged j
join classes c on c.run = j.run and c.class = j.class
group by j.run, c.name
order by bytes desc, class_name, j.run
limit /*:top*/20
