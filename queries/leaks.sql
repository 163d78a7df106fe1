-- Which sites may leak: objects from each quarter of the run are still alive at the end?
with alive as (
    select
        o.run,
        coalesce(s.name, '(the VM or native code)') as allocated_at,
        c.name as class_name,
        least(4, 1 + cast(floor(o.birth_tick * 4 / greatest(t.end_tick, 1)) as bigint)) as quarter,
        o.size
    from objects o
    join trace t on t.run = o.run
    join classes c on c.run = o.run and c.class = o.class
    left join sites s on s.run = o.run and s.site = o.site
    where o.kind <> 'I' and o.death_tick is null and t.has_deaths
)
select
    run,
    allocated_at,
    class_name,
    count(*) as objects,
    sum(size) as bytes,
    coalesce(sum(size) filter (where quarter = 1), 0) as first_quarter,
    coalesce(sum(size) filter (where quarter = 2), 0) as second_quarter,
    coalesce(sum(size) filter (where quarter = 3), 0) as third_quarter,
    coalesce(sum(size) filter (where quarter = 4), 0) as last_quarter
from alive
group by run, allocated_at, class_name
having count(distinct quarter) = 4
order by bytes desc, objects desc, allocated_at, class_name, run
limit /*:top*/20
