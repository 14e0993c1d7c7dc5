-- What SQLite alone knows about itself.

-- name: page_count
select page_count * page_size
from pragma_page_count, pragma_page_size;

-- A table that was dropped and made anew has lost its triggers, and its count is wrong.
-- name: count_is_kept
select count(*) = 2
from sqlite_schema
where type = 'trigger'
and name in (:added, :removed)
and exists (
  select 1
  from penstock_counts
  where penstock_counts.name = :name
);

-- Never run: preparing it shows what the views read.
-- name: engine_views
select
  (select count(*) from dead_messages),
  (select count(*) from processed_events),
  (select count(*) from pipeline_log),
  (select count(*) from api_calls_ledger);

-- What a client's definition must not change: a new name may be the engine's, and so may a table that a key refers to.
-- name: engine_definitions
select count(*)
from sqlite_schema
where type <> 'trigger'
and (lower(name) glob 'penstock_*' or name in ('dead_messages', 'processed_events', 'pipeline_log', 'api_calls_ledger'))
union all
select count(*)
from sqlite_schema as made
join pragma_foreign_key_list(made.name) as reference
where made.type = 'table'
and lower(made.name) not glob 'penstock_*'
and lower(reference."table") glob 'penstock_*';
