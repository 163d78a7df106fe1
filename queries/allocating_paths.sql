-- Which call paths allocate the most bytes? Only allocations by the innermost method count; the innermost five methods are shown.
with sums as (
    select run, context, count(*) as objects, sum(size) as bytes
    from objects
    where kind <> 'I'
    group by run, context
),
hottest as (
    select * from sums order by bytes desc, run, context limit /*:top*/20
)
select
    h.run,
    h.bytes,
    h.objects,
    k1.depth,
    m1.name as method_name,
    m2.name as called_by,
    m3.name as called_by_2,
    m4.name as called_by_3,
    m5.name as called_by_4
from hottest h
join contexts k1 on k1.run = h.run and k1.context = h.context
left join contexts k2 on k2.run = h.run and k2.context = k1.caller
left join contexts k3 on k3.run = h.run and k3.context = k2.caller
left join contexts k4 on k4.run = h.run and k4.context = k3.caller
left join contexts k5 on k5.run = h.run and k5.context = k4.caller
left join methods m1 on m1.run = h.run and m1.method = k1.method
left join methods m2 on m2.run = h.run and m2.method = k2.method
left join methods m3 on m3.run = h.run and m3.method = k3.method
left join methods m4 on m4.run = h.run and m4.method = k4.method
left join methods m5 on m5.run = h.run and m5.method = k5.method
order by h.bytes desc, h.run, h.context
