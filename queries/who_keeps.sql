-- Which fields and arrays hold the objects of a class that are alive at the end? References from before tracing are not counted.
with last_stores as (
    select
        run,
        object,
        field,
        new_target,
        row_number() over (partition by run, object, field, element order by number desc) as nth
    from updates
),
alive as (
    select o.run, o.object, c.name as class_name
    from objects o
    join classes c on c.run = o.run and c.class = o.class
    where o.death_tick is null and c.name like /*:class*/'%'
)
select
    a.run,
    a.class_name,
    coalesce(f.name, 'elements of ' || coalesce(hc.name, '(not known)')) as held_by,
    count(distinct a.object) as objects,
    count(*) as slots
from alive a
join last_stores l on l.run = a.run and l.new_target = a.object and l.nth = 1
left join fields f on f.run = l.run and f.field = l.field
left join objects h on h.run = l.run and h.object = l.object
left join classes hc on hc.run = h.run and hc.class = h.class
where l.object is null or h.death_tick is null
group by a.run, a.class_name, coalesce(f.name, 'elements of ' || coalesce(hc.name, '(not known)'))
order by objects desc, slots desc, a.class_name, held_by, a.run
limit /*:top*/20
