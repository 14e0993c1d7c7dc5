-- A database as `penstock move` looks at it.

-- name: attach
attach :path as past;

-- name: has_past
select 1
from past.sqlite_schema
where name = 'labels';

-- Columns that are computed from others are not copied.
-- name: columns
select tables.name, columns.name
from pragma_table_list as tables
join pragma_table_xinfo(tables.name) as columns
where tables.schema = 'main'
and tables.type = 'table'
and tables.name not like 'sqlite\_%' escape '\'
and columns.hidden = 0
order by tables.name, columns.cid;

-- name: past_columns
select tables.name, columns.name
from pragma_table_list as tables
join pragma_table_xinfo(tables.name, 'past') as columns
where tables.schema = 'past'
and (tables.name in ('labels', 'minutes') or tables.name like 'penstock\_%' escape '\')
order by tables.name, columns.cid;

-- name: things
select type, case type when 'trigger' then name || ' on ' || tbl_name else name end
from main.sqlite_schema
where (type = 'view' and name not in ('dead_messages', 'processed_events', 'pipeline_log', 'api_calls_ledger'))
or (type = 'trigger' and name not like 'penstock\_count\_%' escape '\');

-- name: users_triggers
select name, sql
from main.sqlite_schema
where type = 'trigger';

-- name: virtual
select name
from pragma_table_list
where schema = 'main'
and type = 'virtual';

-- name: history
select ended_at + late, ended_at, started_at, correlation_id, id, causation_id, label, error
from (
  select
    seq,
    late,
    seq - late as ended_at,
    seq - late - micros as started_at,
    correlation_id,
    coalesce(id, correlation_id) as id,
    causation_id,
    label,
    error
  from past.entries
)
order by seq;

-- name: note_entry
insert into past.entries (seq, correlation_id, id, causation_id, label, late, micros, error)
values (?, ?, ?, ?, ?, ?, ?, ?);

-- name: applied
select name, checksum
from penstock_migrations
order by name;

-- name: note_migration
insert into penstock_migrations (name, checksum, applied_at)
values (:name, :checksum, :now);

-- name: fact
select value
from penstock_facts
where name = :name;

-- name: note_fact
insert into penstock_facts (name, value)
values (:name, :value);

-- name: token
select last
from penstock_tokens;

-- name: set_token
update penstock_tokens
set last = :token;

-- name: drawn
select name, seq
from main.sqlite_sequence;

-- Tables that give no number twice.
-- name: numbered
select name
from main.sqlite_schema
where type = 'table'
and lower(sql) like '%autoincrement%';

-- name: forget_mark
delete from main.sqlite_sequence
where name = :name;

-- name: set_mark
insert into main.sqlite_sequence (name, seq)
values (:name, :last);
