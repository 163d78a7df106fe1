-- What held an object, from when to when, who stored it there, and what ended that?
-- `--set object=1f3a` is the object's id as it is printed; without it, all objects.
select
    r.run,
    o.object,
    coalesce(f.name, 'element of ' || hc.name) as slot,
    r.element,
    h.object as holder,
    r.from_tick,
    r.to_tick,
    m.name as stored_by,
    t.name as thread_name,
    r.ended
from refs r
join objects o on o.run = r.run and o.number = r.target
left join objects h on h.run = r.run and h.number = r.origin
left join classes hc on hc.run = h.run and hc.class = h.class
left join fields f on f.run = r.run and f.field = r.field
left join contexts x on x.run = r.run and x.context = r.context
left join methods m on m.run = x.run and m.method = x.method
left join threads t on t.run = r.run and t.thread = r.thread
where /*:object*/0 = 0 or o.object = /*:object*/0
order by r.run, r.from_record, r.from_tick, o.number, slot, r.element
limit /*:top*/20
