-- Which methods stored into a field, in which threads, and how often did a store replace something?
-- `--set field=app.Cart.items` is the field. Stores of null are not counted.
select
    r.run,
    f.name as field_name,
    m.name as method_name,
    t.name as thread_name,
    count(*) as stores,
    count(distinct r.origin) as objects,
    count(distinct r.target) as held,
    count(*) filter (where r.ended = 'overwritten') as replaced_later
from refs r
join fields f on f.run = r.run and f.field = r.field
left join contexts x on x.run = r.run and x.context = r.context
left join methods m on m.run = x.run and m.method = x.method
left join threads t on t.run = r.run and t.thread = r.thread
-- What was there when tracing began was stored by no method that is known.
where r.from_record > 0 and f.name like /*:field*/'%'
group by r.run, f.name, m.name, t.name
order by stores desc, field_name, method_name, thread_name, r.run
limit /*:top*/20
