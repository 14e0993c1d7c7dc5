-- Worker processes. The lock of one is the sign that it lives: the server lets go of it when the connection ends.

-- name: hold_lock
select pg_advisory_lock(20550, cast(:worker as integer));

-- name: try_lock
select pg_try_advisory_lock(20550, cast(:worker as integer));

-- Until this transaction ends a worker that was found dead cannot come back; nothing if it has done so.
-- name: keep_away
select pg_try_advisory_xact_lock(20550, cast(:worker as integer));

-- After a lost connection the server may still believe in the old one, and in its lock.
-- name: end_old_connection
select count(pg_terminate_backend(pid))
from pg_locks
where locktype = 'advisory'
and database = (select oid from pg_database where datname = current_database())
and classid = 20550
and objid = :worker
and pid = any(:old);

-- name: enrol_again
insert into penstock_workers (id, host, pid, started_at)
overriding system value
values (:worker, :host, :pid, :now)
on conflict (id) do nothing
returning id;

-- Whether the server holds the lock of each.
-- name: others
with locked as materialized (
  select distinct cast(objid as bigint) as id
  from pg_locks
  where locktype = 'advisory'
  and database = (select oid from pg_database where datname = current_database())
  and classid = 20550
  and granted
)
select penstock_workers.id, locked.id is not null
from penstock_workers
left join locked on locked.id = penstock_workers.id
where penstock_workers.id <> :worker
order by penstock_workers.id
limit 10000;

-- name: identity
insert into penstock_facts (name, value)
values ('identity', :fresh)
on conflict (name) do update
set value = penstock_facts.value
returning value;

-- name: known_identity
select value
from penstock_facts
where name = 'identity';

-- Whether a worker lives, without asking for its lock.
-- name: is_locked
select exists (
  select 1
  from pg_locks
  where locktype = 'advisory'
  and database = (select oid from pg_database where datname = current_database())
  and classid = 20550
  and objid = :worker
  and granted
);
