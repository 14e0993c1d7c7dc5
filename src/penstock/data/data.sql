-- What is read of the engine's own tables.

-- name: newest_dead
select queue, type, count(*) as messages, sum(case when resolution is null then 1 else 0 end) as unresolved
from (
  select queue, type, failed_at, resolution
  from penstock_dead
  order by seq desc
  limit :scanned
) as newest
where failed_at > :since
and failed_at <= :until
group by queue, type
order by count(*) desc, queue, type
limit :most;

-- name: kept_count
select total
from penstock_counts
where name = :name;

-- name: tasks
select task, '' as statement, sum(executions) as executions, sum(rows_read) as rows_read,
  sum(rows_written) as rows_written, sum(pages) as pages, sum(micros) as micros
from penstock_usage
where month = :month
and statement not like 'penstock:%'
group by task
order by rows_read desc
limit :most;

-- name: statements
select task, statement, executions, rows_read, rows_written, pages, micros
from penstock_usage
where month = :month
and statement not like 'penstock:%'
order by rows_read + rows_written desc
limit :most;

-- name: queues
select task, executions
from penstock_usage
where month = :month
and statement = 'penstock:queue_operations'
order by executions desc
limit :most;

-- name: sizes
select at, bytes
from penstock_sizes
order by day desc
limit 14;
