-- How much does each thread allocate in each second of the run?
select
    a.run,
    a.second,
    a.thread,
    coalesce(t.name, '(not known)') as thread_name,
    a.objects,
    a.bytes
from allocations_by_second a
left join threads t on t.run = a.run and t.thread = a.thread
order by a.run, a.second nulls last, a.bytes desc, a.thread nulls last
