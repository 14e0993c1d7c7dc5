-- A snapshot of an app has an id of its own, by which a report can name it.

alter table app_snapshots add column id text;

update app_snapshots set id = cast(track_id as text) || ' ' || day where id is null;
