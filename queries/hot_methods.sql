-- Which methods are called most often, and how many ticks, exits by exception and allocations do the calls have?
select
    c.run,
    m.name as method_name,
    count(*) as calls,
    sum(coalesce(c.exit_tick, t.end_tick) - c.entry_tick) as ticks,
    max(c.depth) as deepest,
    count(*) filter (where c.left_by = 'X') as left_by_exception,
    sum(c.allocated_objects) as allocated_objects,
    sum(c.allocated_bytes) as allocated_bytes
from calls c
join trace t on t.run = c.run
left join methods m on m.run = c.run and m.method = c.method
group by c.run, m.name
order by calls desc, ticks desc, method_name, c.run
limit /*:top*/20
