-- What statements, requests and operations have cost in a month. Kinds other than statements begin with `penstock:`.

-- name: used
select case when statement like 'penstock:%' then statement else '' end as kind, sum(executions) as executions,
  sum(rows_read) as rows_read, sum(rows_written) as rows_written, sum(micros) as micros
from penstock_usage
where month = :month
group by 1;

-- name: used_by_task
select case when statement like 'penstock:%' then statement else '' end as kind, sum(executions) as executions,
  sum(rows_read) as rows_read, sum(rows_written) as rows_written, sum(micros) as micros
from penstock_usage
where month = :month
and task = :task
group by 1;
