-- Which objects are stored into the most other objects?
with by_holder as (
    -- In two steps: count(distinct) would need a hash table per object.
    select run, new_target, object, count(*) as stores
    from updates
    where new_target is not null and (object is null or object <> new_target)
    group by run, new_target, object
),
stores as (
    select run, new_target, count(object) as holders, cast(sum(stores) as bigint) as stores
    from by_holder
    group by run, new_target
)
select
    t.run,
    c.name as class_name,
    o.object,
    t.holders,
    t.stores,
    coalesce(s.name, '(the VM or native code)') as allocated_at
from stores t
join objects o on o.run = t.run and o.object = t.new_target
join classes c on c.run = o.run and c.class = o.class
left join sites s on s.run = o.run and s.site = o.site
order by t.holders desc, t.stores desc, class_name, o.object, t.run
limit /*:top*/20
