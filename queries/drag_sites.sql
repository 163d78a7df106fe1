-- Which sites allocate objects that stay alive longest after their last use? Drag is bytes times ticks from the last use to the death. Traces without calls do not tell it.
select
    o.run,
    coalesce(s.name, '(the VM or native code)') as allocated_at,
    c.name as class_name,
    count(*) as died,
    sum(o.size) as bytes,
    sum(cast(o.size as double) * (o.death_tick - o.last_use_tick)) as drag,
    max(o.death_tick - o.last_use_tick) as longest_ticks
from objects o
join classes c on c.run = o.run and c.class = o.class
left join sites s on s.run = o.run and s.site = o.site
where o.kind <> 'I' and o.death_tick is not null and o.last_use_tick is not null
group by o.run, s.name, c.name
order by drag desc, bytes desc, allocated_at, class_name, o.run
limit /*:top*/20
