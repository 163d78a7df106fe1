-- Which share of each class's objects is still alive when so many bytes more have been allocated? Classes with the most bytes.
select
    o.run,
    c.name as class_name,
    count(*) as objects,
    sum(o.size) as bytes,
    round(cast(count(*) filter (where o.death_tick is null or o.death_bytes - o.birth_bytes >= 65536) as double) * 100 / count(*), 1) as percent_64k,
    round(cast(count(*) filter (where o.death_tick is null or o.death_bytes - o.birth_bytes >= 1048576) as double) * 100 / count(*), 1) as percent_1m,
    round(cast(count(*) filter (where o.death_tick is null or o.death_bytes - o.birth_bytes >= 16777216) as double) * 100 / count(*), 1) as percent_16m,
    round(cast(count(*) filter (where o.death_tick is null or o.death_bytes - o.birth_bytes >= 268435456) as double) * 100 / count(*), 1) as percent_256m,
    round(cast(count(*) filter (where o.death_tick is null) as double) * 100 / count(*), 1) as percent_at_the_end
from objects o
join classes c on c.run = o.run and c.class = o.class
where o.kind <> 'I'
group by o.run, c.name
order by bytes desc, class_name, o.run
limit /*:top*/20
