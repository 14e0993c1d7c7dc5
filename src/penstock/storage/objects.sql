-- Objects and who owns them.

-- name: create
insert into penstock_objects (class, name, state, hint, created_at, saved_at)
values (:class_name, :name, :fresh, :hint, :now, :now)
on conflict (class, name) do nothing;

-- An owner that is not among the workers any more has died, and its rows were returned.
-- name: acquire
update penstock_objects
set owner = :me,
  epoch = epoch + 1,
  wanted = null
where class = :class_name
and name = :name
and (
  owner is null
  or owner = :me
  or not exists (
    select 1
    from penstock_workers
    where penstock_workers.id = penstock_objects.owner
  )
)
returning epoch, state;

-- name: ask
update penstock_objects
set wanted = :me
where class = :class_name
and name = :name
and owner is not null;

-- name: owner
select owner
from penstock_objects
where class = :class_name
and name = :name;

-- name: release
update penstock_objects
set owner = null,
  wanted = null
where class = :class_name
and name = :name
and epoch = :epoch
and owner = :me;

-- name: disown
update penstock_objects
set owner = null,
  wanted = null
where class = :class_name
and name = :name
and owner = :me;

-- name: let_go_all
update penstock_objects
set owner = null,
  wanted = null
where owner = :worker;

-- name: wanted
select class, name
from penstock_objects
where owner = :me
and wanted is not null
limit 1000;

-- name: save
update penstock_objects
set state = :state,
  saved_at = :now
where class = :class_name
and name = :name
and epoch = :epoch
and owner = :me;

-- name: is_owned
select 1
from penstock_objects
where class = :class_name
and name = :name
and epoch = :epoch
and owner = :me
--postgres for update
;

-- name: look
select
  class, name, state, epoch, owner,
  (
    select due
    from penstock_timers
    where kind = 'alarm'
    and penstock_timers.name = penstock_objects.class || '/' || penstock_objects.name
  ),
  alarm_lost, saved_at
from penstock_objects
where class = :class_name
and name = :name;

-- name: listed
select
  class, name, state, epoch, owner,
  (
    select due
    from penstock_timers
    where kind = 'alarm'
    and penstock_timers.name = penstock_objects.class || '/' || penstock_objects.name
  ),
  alarm_lost, saved_at
from penstock_objects
where cast(:class_name as text) is null
or class = :class_name
order by class, name
limit :limit;

-- name: lost_alarm
update penstock_objects
set alarm_lost = :lost
where class = :class_name
and name = :name;

-- name: tag
select tag
from penstock_classes
where class = :class_name;

-- name: introduce
insert into penstock_classes (class, tag, applied_at)
values (:class_name, :tag, :now)
on conflict (class) do nothing;
