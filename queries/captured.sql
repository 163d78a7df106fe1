-- Which sites allocate objects that never leave the allocating method, and could be on its stack? Traces without calls do not tell it.
select
    o.run,
    coalesce(s.name, '(the VM or native code)') as allocated_at,
    c.name as class_name,
    count(*) as objects,
    sum(o.size) as bytes,
    count(*) filter (where o.death_tick is not null and not o.escaped_frame and not o.escaped_thread) as captured,
    coalesce(sum(o.size) filter (where o.death_tick is not null and not o.escaped_frame and not o.escaped_thread), 0) as captured_bytes
from objects o
join trace t on t.run = o.run
join classes c on c.run = o.run and c.class = o.class
left join sites s on s.run = o.run and s.site = o.site
where o.kind <> 'I' and t.has_deaths and t.events like '%method%'
group by o.run, s.name, c.name
order by captured_bytes desc, bytes desc, allocated_at, class_name, o.run
limit /*:top*/20
