-- Which objects pass from one thread to another, and how many of them die in another thread than the one that allocated them?
select
    o.run,
    c.name as class_name,
    coalesce(s.name, '(the VM or native code)') as allocated_at,
    count(*) as objects,
    sum(o.size) as bytes,
    count(distinct o.thread) as threads,
    case when bool_or(t.has_deaths) then count(*) filter (where o.death_thread <> o.thread) end as died_in_another
from objects o
join trace t on t.run = o.run
join classes c on c.run = o.run and c.class = o.class
left join sites s on s.run = o.run and s.site = o.site
where o.escaped_thread
group by o.run, c.name, s.name
order by objects desc, bytes desc, class_name, allocated_at, o.run
limit /*:top*/20
