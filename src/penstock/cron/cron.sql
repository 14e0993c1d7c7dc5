-- name: last_skipped
select finished_at
from penstock_ticks
where schedule = :task
and status = 'ceiling'
order by due desc
limit 1;
