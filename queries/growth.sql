-- Which sites allocate more, or less, in the last run of the folder than in the first?
with runs as (
    select
        run,
        row_number() over (order by coalesce(start_unix_millis, 0), run) as nth,
        count(*) over () as all_runs,
        has_deaths
    from trace
),
sums as (
    select
        o.run,
        coalesce(s.name, '(the VM or native code)') as allocated_at,
        c.name as class_name,
        count(*) as objects,
        sum(o.size) as bytes,
        coalesce(sum(o.size) filter (where o.death_tick is null), 0) as alive_bytes
    from objects o
    join classes c on c.run = o.run and c.class = o.class
    left join sites s on s.run = o.run and s.site = o.site
    where o.kind <> 'I'
    group by o.run, s.name, c.name
),
first_run as (
    select s.* from sums s join runs r on r.run = s.run where r.nth = 1 and r.all_runs > 1
),
last_run as (
    select s.* from sums s join runs r on r.run = s.run where r.nth = r.all_runs and r.all_runs > 1
),
both_runs as (
    select
        coalesce(f.allocated_at, l.allocated_at) as allocated_at,
        coalesce(f.class_name, l.class_name) as class_name,
        coalesce(f.objects, 0) as objects_before,
        coalesce(l.objects, 0) as objects_after,
        coalesce(f.bytes, 0) as bytes_before,
        coalesce(l.bytes, 0) as bytes_after,
        case when (select bool_and(has_deaths) from runs where nth = 1) then coalesce(f.alive_bytes, 0) end as alive_before,
        case when (select bool_and(has_deaths) from runs where nth = all_runs) then coalesce(l.alive_bytes, 0) end as alive_after
    from first_run f
    full outer join last_run l on l.allocated_at = f.allocated_at and l.class_name = f.class_name
)
select *, bytes_after - bytes_before as growth
from both_runs
where bytes_after <> bytes_before
order by abs(bytes_after - bytes_before) desc, allocated_at, class_name
limit /*:top*/20
