-- What did a field hold in each object, from when to when, and who stored it?
-- `--set field=app.Cart.items` is the field, `--set object=1f3a` the id of one object.
select
    r.run,
    f.name as field_name,
    h.object,
    o.object as held,
    c.name as held_class,
    r.from_tick,
    r.to_tick,
    m.name as stored_by,
    t.name as thread_name,
    r.ended
from refs r
join fields f on f.run = r.run and f.field = r.field
join objects o on o.run = r.run and o.number = r.target
join classes c on c.run = o.run and c.class = o.class
left join objects h on h.run = r.run and h.number = r.origin
left join contexts x on x.run = r.run and x.context = r.context
left join methods m on m.run = x.run and m.method = x.method
left join threads t on t.run = r.run and t.thread = r.thread
where f.name like /*:field*/'%' and (/*:object*/0 = 0 or h.object = /*:object*/0)
order by r.run, f.name, r.origin, r.from_record
limit /*:top*/20
