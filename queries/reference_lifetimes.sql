-- How long do the references of each field last, in bytes allocated meanwhile, and what ends them?
with lasting as (
    select r.run, r.field, r.ended, coalesce(r.to_bytes, t.end_bytes) - r.from_bytes as bytes
    from refs r
    join trace t on t.run = r.run
)
select
    l.run,
    f.name as field_name,
    count(*) as stored,
    count(*) filter (where l.ended = 'overwritten') as overwritten,
    count(*) filter (where l.ended = 'origin died') as until_death,
    count(*) filter (where l.ended = 'cleared') as cleared,
    count(*) filter (where l.ended is null) as to_the_end,
    round(avg(l.bytes), 1) as average_bytes,
    max(l.bytes) as longest_bytes
from lasting l
join fields f on f.run = l.run and f.field = l.field
where f.name like /*:field*/'%'
group by l.run, f.name
order by stored desc, field_name, l.run
limit /*:top*/20
