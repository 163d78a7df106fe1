-- Which sites allocate objects that survive the allocation of 4 MiB, so that a young collection promotes them, and then die?
select
    o.run,
    coalesce(s.name, '(the VM or native code)') as allocated_at,
    c.name as class_name,
    count(*) as objects,
    sum(o.size) as bytes,
    min(o.death_bytes - o.birth_bytes) as youngest,
    max(o.death_bytes - o.birth_bytes) as oldest
from objects o
join classes c on c.run = o.run and c.class = o.class
left join sites s on s.run = o.run and s.site = o.site
where o.kind <> 'I' and o.death_tick is not null and o.death_bytes - o.birth_bytes >= /*:old*/4194304
group by o.run, s.name, c.name
order by bytes desc, objects desc, allocated_at, class_name, o.run
limit /*:top*/20
