-- How many objects does each class have, how many are alive at the end, and how long did the others live?
-- The age of initial objects is unknown.
select
    o.run,
    c.name as class_name,
    count(*) as objects,
    sum(o.size) as bytes,
    case when bool_or(t.has_deaths) then count(*) filter (where o.death_tick is null) end as alive_objects,
    case when bool_or(t.has_deaths) then coalesce(sum(o.size) filter (where o.death_tick is null), 0) end as alive_bytes,
    round(avg(cast(o.death_tick - o.birth_tick as double)) filter (where o.kind <> 'I'), 1) as mean_ticks,
    max(o.death_tick - o.birth_tick) filter (where o.kind <> 'I') as longest_ticks
from objects o
join trace t on t.run = o.run
join classes c on c.run = o.run and c.class = o.class
group by o.run, c.name
order by bytes desc, objects desc, class_name, o.run
limit /*:top*/20
