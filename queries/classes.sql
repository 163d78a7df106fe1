-- What became of each class's objects: how many there were, how many are alive at the end, how long the others lived?
select
    o.run,
    c.name as class_name,
    count(*) as objects,
    sum(o.size) as bytes,
    count(*) filter (where o.death_tick is null) as alive_objects,
    coalesce(sum(o.size) filter (where o.death_tick is null), 0) as alive_bytes,
    round(avg(cast(o.death_tick - o.birth_tick as double)), 1) as mean_ticks,
    max(o.death_tick - o.birth_tick) as longest_ticks
from objects o
join classes c on c.run = o.run and c.class = o.class
group by o.run, c.name
order by bytes desc, objects desc, class_name, o.run
limit /*:top*/20
