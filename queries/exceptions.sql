-- Where is which exception thrown, is it caught, and what does it cost: methods left, and ticks until it is caught?
select
    e.run,
    coalesce(c.name, '(not known)') as class_name,
    m.name as thrown_in,
    count(*) as thrown,
    count(*) filter (where e.ended = 'caught') as caught,
    count(*) filter (where e.ended = 'uncaught') as uncaught,
    sum(e.frames) as frames,
    coalesce(sum(e.ended_tick - e.tick) filter (where e.ended = 'caught'), 0) as ticks
from exceptions e
left join objects o on o.run = e.run and o.object = e.exception
left join classes c on c.run = o.run and c.class = o.class
left join methods m on m.run = e.run and m.method = e.method
group by e.run, c.name, m.name
order by thrown desc, ticks desc, class_name, thrown_in, e.run
limit /*:top*/20
