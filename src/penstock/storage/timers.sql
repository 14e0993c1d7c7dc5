-- Timers: cron schedules and objects' alarms.

-- name: due_timers
select seq, kind, name, due, scheduled, queue, type, rule
from penstock_timers
where paused = 0
and due <= :now
order by due
limit :limit
--postgres for update skip locked
;

-- name: next_timer
select due
from penstock_timers
where paused = 0
order by due
limit 1;

-- name: remove_timer
delete from penstock_timers
where seq = :seq;

-- name: move_timer
update penstock_timers
set due = :due,
  scheduled = :scheduled,
  number = number + :fired
where seq = :seq;

-- name: set_timer
insert into penstock_timers (kind, name, due, scheduled, queue, type)
values (:kind, :name, :due, :due, :queue, :type)
on conflict (kind, name) do update
set due = excluded.due,
  scheduled = excluded.due;

-- An object whose alarm is set again has it back.
-- name: found_alarm
update penstock_objects
set alarm_lost = 0
where class = :class_name
and name = :name
and alarm_lost = 1;

-- name: clear_timer
delete from penstock_timers
where kind = :kind
and name = :name;

-- The queue of a task holds its runs alone: any row in it is a run that has not ended.
-- name: runs
select
  (
    select count(*)
    from (
      select 1
      from penstock_messages
      where queue = :queue
      and priority = 1
      and worker is null
      limit :most
    ) as waiting
  ) + (
    select count(*)
    from penstock_messages
    where worker is not null
    and due > 0
    and queue = :queue
  );

-- name: note_tick
insert into penstock_ticks (schedule, due, fired_at, status, missed)
values (:schedule, :due, :now, :status, :missed)
on conflict (schedule, due) do nothing;

-- name: end_tick
update penstock_ticks
set status = :status,
  started_at = :started_at,
  finished_at = :finished_at,
  rows_read = :rows_read,
  rows_written = :rows_written,
  error = :error,
  phase = :phase
where schedule = :schedule
and due = :due;

-- name: send_fired
insert into penstock_messages (
  id, queue, priority, due, type, source, correlation_id, hops, depth, sent_at, checksum, body
)
values (:id, :queue, 1, :due, :type, 'penstock', :id, 0, 0, :due, :checksum, :body)
on conflict (id, queue, handler) do nothing;

-- A next fire that lies behind the one that follows from now came from a clock that was ahead.
-- name: declare
insert into penstock_timers (kind, name, due, scheduled, queue, type, rule)
values ('cron', :name, :due, :since, :queue, 'cron.tick', :rule)
on conflict (kind, name) do update
set due = case
    when penstock_timers.rule is not distinct from excluded.rule and penstock_timers.due < excluded.due
    then penstock_timers.due
    else excluded.due
  end,
  scheduled = case
    when penstock_timers.rule is not distinct from excluded.rule then penstock_timers.scheduled
    else excluded.scheduled
  end,
  rule = excluded.rule,
  queue = excluded.queue
where penstock_timers.rule is distinct from excluded.rule
or penstock_timers.queue is distinct from excluded.queue
or penstock_timers.due > excluded.due;

-- name: pause_timer
update penstock_timers
set paused = :paused,
  due = coalesce(:due, due),
  scheduled = coalesce(:since, scheduled)
where kind = :kind
and name = :name;

-- name: fire_by_hand
update penstock_timers
set number = number + 1
where kind = 'cron'
and name = :name
returning queue, type, rule;

-- name: timers
select kind, name, due, number, queue, rule, paused
from penstock_timers
where kind = :kind
order by name
limit 10000;
