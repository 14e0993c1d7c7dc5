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

-- What a client's definition must not add to: names of the engine's, and definitions that name its tables.
-- name: engine_names
select total((lower(name) glob 'penstock_*') + coalesce(lower(sql) glob '*penstock_*', 0))
from sqlite_schema
where type <> 'trigger';

-- SQLite computes checks, generated columns and indexes on expressions without asking the guard about their functions.
-- name: calls
select total(length(sql) - length(replace(sql, '(', '')))
from sqlite_schema
where lower(tbl_name) = ?;
