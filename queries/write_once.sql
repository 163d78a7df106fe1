-- Which fields are stored into once per object, and could be final?
-- Initial objects are left out: what was stored into them before tracing is unknown.
with slots as (
    select run, field, object, count(*) as stores
    from updates
    where field is not null and object is not null
    group by run, field, object
)
select s.run, f.name as field_name, f.is_final, count(*) as objects
from slots s
join fields f on f.run = s.run and f.field = s.field
left join objects i on i.run = s.run and i.object = s.object and i.kind = 'I'
where i.object is null
group by s.run, f.name, f.is_final
having max(s.stores) = 1
order by objects desc, field_name, s.run
limit /*:top*/20
