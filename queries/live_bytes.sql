-- How many objects and bytes are alive over the run, at each twentieth of the clock?
with changes as (
    select
        o.run,
        cast(greatest(1, ceil(o.birth_tick * 20 / greatest(t.end_tick, 1))) as bigint) as step,
        1 as objects,
        o.size as bytes
    from objects o
    join trace t on t.run = o.run
    union all
    select
        o.run,
        cast(greatest(1, ceil(o.death_tick * 20 / greatest(t.end_tick, 1))) as bigint) as step,
        -1 as objects,
        -o.size as bytes
    from objects o
    join trace t on t.run = o.run
    where o.death_tick is not null
),
steps as (
    select run, step, sum(objects) as objects, sum(bytes) as bytes
    from changes
    group by run, step
),
moments as (
    select t.run, t.end_tick, n.step
    from trace t
    cross join (
        values (1), (2), (3), (4), (5), (6), (7), (8), (9), (10),
            (11), (12), (13), (14), (15), (16), (17), (18), (19), (20)
    ) as n(step)
    where t.has_deaths
)
select
    m.run,
    m.step * 5 as percent,
    cast(floor(m.end_tick * m.step / 20) as bigint) as tick,
    sum(coalesce(s.objects, 0)) over (partition by m.run order by m.step) as live_objects,
    sum(coalesce(s.bytes, 0)) over (partition by m.run order by m.step) as live_bytes
from moments m
left join steps s on s.run = m.run and s.step = m.step
order by m.run, percent
