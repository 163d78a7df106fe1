-- Objects of which classes die together, made unreachable by the same action of the program?
with deaths as (
    select o.run, o.death_record, c.name as class_name, count(*) as objects
    from objects o
    join classes c on c.run = o.run and c.class = o.class
    where o.death_record is not null
    group by o.run, o.death_record, c.name
)
select
    a.run,
    a.class_name,
    b.class_name as dies_with,
    count(*) as times,
    sum(a.objects) as objects,
    sum(b.objects) as objects_with
from deaths a
join deaths b on b.run = a.run and b.death_record = a.death_record and a.class_name < b.class_name
group by a.run, a.class_name, b.class_name
order by times desc, objects desc, a.class_name, dies_with, a.run
limit /*:top*/20
