-- Which sites allocate reference arrays most of whose elements are never set? Stores by native code are not counted.
with stored as (
    select run, object, element
    from updates
    where element is not null and new_target is not null
    group by run, object, element
),
filled as (
    select run, object, count(*) as elements
    from stored
    group by run, object
)
select
    o.run,
    coalesce(s.name, '(not known)') as allocated_at,
    c.name as class_name,
    count(*) as arrays,
    sum(o.length) as elements,
    sum(coalesce(f.elements, 0)) as used,
    sum(cast(floor(cast(o.size as double) * (o.length - coalesce(f.elements, 0)) / o.length) as bigint)) as wasted_bytes
from objects o
join classes c on c.run = o.run and c.class = o.class
left join sites s on s.run = o.run and s.site = o.site
left join filled f on f.run = o.run and f.object = o.object
where o.kind = 'A' and o.length > 0 and (c.descriptor like '[L%' or c.descriptor like '[[%')
group by o.run, s.name, c.name
having sum(coalesce(f.elements, 0)) * 2 < sum(o.length)
order by wasted_bytes desc, elements desc, allocated_at, class_name, o.run
limit /*:top*/20
