-- Which classes were alive at a moment, how many of their objects, and how many references held these?
-- `--set tick=N` is the moment; without it, the middle of the run. What died at that very tick is dead. Objects that nothing recorded holds are alive through local variables, or are named again later.
with moment as (
    select run, case when /*:tick*/0 > 0 then /*:tick*/0 else floor(end_tick / 2) end as tick
    from trace
    where has_deaths
),
alive as (
    select o.run, o.number, o.class, o.size
    from objects o
    join moment m on m.run = o.run
    where (o.birth_tick < m.tick or o.kind = 'I') and (o.death_tick is null or o.death_tick > m.tick)
),
held as (
    select r.run, r.target, count(*) as holders
    from refs r
    join moment m on m.run = r.run
    where (r.from_tick < m.tick or r.from_record = 0) and (r.to_tick is null or r.to_tick >= m.tick)
    group by r.run, r.target
)
select
    a.run,
    c.name as class_name,
    count(*) as objects,
    sum(a.size) as bytes,
    sum(h.holders) as held_by_references,
    count(*) filter (where h.holders is null) as held_by_none
from alive a
join classes c on c.run = a.run and c.class = a.class
left join held h on h.run = a.run and h.target = a.number
group by a.run, c.name
order by bytes desc, class_name, a.run
limit /*:top*/20
