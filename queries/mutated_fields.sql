-- Which fields are stored into most often, and how often does a store replace another object?
select
    u.run,
    f.name as field_name,
    count(*) as stores,
    count(distinct u.object) as objects,
    count(*) filter (where u.new_target <> u.old_target) as replaced,
    count(*) filter (where u.new_target is null) as cleared
from updates u
join fields f on f.run = u.run and f.field = u.field
-- The clearing of a weak reference at the death of its referent has no thread.
where u.thread is not null
group by u.run, f.name
order by stores desc, replaced desc, field_name, u.run
limit /*:top*/20
