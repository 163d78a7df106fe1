-- Which fields and arrays hold the objects of a class that are alive at the end?
-- Weak references, and references from before tracing, are not counted.
with last_stores as (
    select run, max(number) as number
    from updates
    group by run, object, field, element
),
alive as (
    select o.run, o.object, c.name as class_name
    from objects o
    join trace t on t.run = o.run
    join classes c on c.run = o.run and c.class = o.class
    where o.death_tick is null and t.has_deaths and c.name like /*:class*/'%'
)
select
    a.run,
    a.class_name,
    coalesce(f.name, 'elements of ' || coalesce(hc.name, '(not known)')) as held_by,
    count(distinct a.object) as objects,
    count(*) as slots
from alive a
join updates u on u.run = a.run and u.new_target = a.object
join last_stores l on l.run = u.run and l.number = u.number
left join fields f on f.run = u.run and f.field = u.field
left join objects h on h.run = u.run and h.object = u.object
left join classes hc on hc.run = h.run and hc.class = h.class
where
    (u.object is null or h.death_tick is null and u.object <> a.object)
    and (
        f.name is null
        or f.name <> 'java.lang.ref.Reference.referent'
        or hc.name in ('java.lang.ref.FinalReference', 'java.lang.ref.Finalizer')
    )
group by a.run, a.class_name, coalesce(f.name, 'elements of ' || coalesce(hc.name, '(not known)'))
order by objects desc, slots desc, a.class_name, held_by, a.run
limit /*:top*/20
