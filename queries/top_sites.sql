-- Which sites allocate the most bytes, and how much of that is alive at the end?
select
    o.run,
    coalesce(s.name, '(the VM or native code)') as allocated_at,
    c.name as class_name,
    count(*) as objects,
    sum(o.size) as bytes,
    case when bool_or(t.has_deaths) then count(*) filter (where o.death_tick is null) end as alive_objects,
    case when bool_or(t.has_deaths) then coalesce(sum(o.size) filter (where o.death_tick is null), 0) end as alive_bytes
from objects o
join trace t on t.run = o.run
join classes c on c.run = o.run and c.class = o.class
left join sites s on s.run = o.run and s.site = o.site
where o.kind <> 'I'
group by o.run, s.name, c.name
order by bytes desc, objects desc, allocated_at, class_name, o.run
limit /*:top*/20
