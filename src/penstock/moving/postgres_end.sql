-- A database as `penstock move` looks at it.

-- name: hold_off_workers
lock table penstock.penstock_workers in share mode;

-- Partitions are read through what they are parts of; what an extension made is not the user's.
-- name: columns
select
  spaces.nspname,
  spaces.nspname = current_schema(),
  tables.relname,
  columns.attname,
  case when types.typtype = 'e' then 'enum' else coalesce(bases.typname, types.typname) end
from pg_class as tables
join pg_namespace as spaces on spaces.oid = tables.relnamespace
join pg_attribute as columns on columns.attrelid = tables.oid
join pg_type as types on types.oid = columns.atttypid
left join pg_type as bases on bases.oid = types.typbasetype and types.typtype = 'd'
where tables.relkind in ('r', 'p')
and not tables.relispartition
and tables.relpersistence <> 't'
and spaces.nspname <> 'information_schema'
and spaces.nspname not like 'pg\_%'
and columns.attnum > 0
and not columns.attisdropped
and columns.attgenerated = ''
and not exists (select 1 from pg_depend where pg_depend.objid = tables.oid and pg_depend.deptype = 'e')
order by spaces.nspname, tables.relname, columns.attnum;

-- name: things
select 'view', views.relname
from pg_class as views
join pg_namespace as spaces on spaces.oid = views.relnamespace
where views.relkind in ('v', 'm')
and spaces.nspname not in ('penstock', 'information_schema')
and spaces.nspname not like 'pg\_%'
and not exists (select 1 from pg_depend where pg_depend.objid = views.oid and pg_depend.deptype = 'e')
union all
select 'trigger', triggers.tgname || ' on ' || tables.relname
from pg_trigger as triggers
join pg_class as tables on tables.oid = triggers.tgrelid
join pg_namespace as spaces on spaces.oid = tables.relnamespace
where not triggers.tgisinternal
and triggers.tgparentid = 0
and triggers.tgname not like 'penstock\_count\_%'
and spaces.nspname not in ('penstock', 'information_schema');

-- name: foreign_keys
select spaces.nspname, tables.relname, keys.conname, pg_get_constraintdef(keys.oid)
from pg_constraint as keys
join pg_class as tables on tables.oid = keys.conrelid
join pg_namespace as spaces on spaces.oid = tables.relnamespace
where keys.contype = 'f'
and keys.conparentid = 0
and spaces.nspname <> 'penstock'
order by 1, 2, 3;

-- The sequences that give columns their numbers.
-- name: sequences
select
  spaces.nspname,
  spaces.nspname = current_schema(),
  tables.relname,
  columns.attname,
  pg_get_serial_sequence(format('%I.%I', spaces.nspname, tables.relname), columns.attname)
from pg_class as tables
join pg_namespace as spaces on spaces.oid = tables.relnamespace
join pg_attribute as columns on columns.attrelid = tables.oid
where tables.relkind in ('r', 'p')
and not tables.relispartition
and spaces.nspname <> 'information_schema'
and spaces.nspname not like 'pg\_%'
and columns.attnum > 0
and not columns.attisdropped
and pg_get_serial_sequence(format('%I.%I', spaces.nspname, tables.relname), columns.attname) is not null;

-- name: set_sequence
select setval(cast(:sequence as regclass), :last);

-- name: drawn
select
  case
    when owned.relname is null then places.relname
    when spaces.nspname in (current_schema(), 'penstock') then owned.relname
    else spaces.nspname || '.' || owned.relname
  end,
  coalesce(pg_sequences.last_value, 0)
from pg_class as places
join pg_namespace as spaces on spaces.oid = places.relnamespace
join pg_sequences on pg_sequences.schemaname = spaces.nspname and pg_sequences.sequencename = places.relname
left join pg_depend on pg_depend.objid = places.oid and pg_depend.deptype in ('a', 'i') and pg_depend.refobjsubid > 0
left join pg_class as owned on owned.oid = pg_depend.refobjid
where places.relkind = 'S';

-- name: applied
select name, checksum
from penstock.penstock_migrations
order by name;

-- name: note_migration
insert into penstock.penstock_migrations (name, checksum, applied_at)
values (:name, :checksum, :now);

-- name: fact
select value
from penstock.penstock_facts
where name = :name;
