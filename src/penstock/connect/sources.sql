-- The statements of sources, for both stores.

-- name: sources
select s.id, s.name, s.kind, s.enabled, s.created_at, t.cursor, t.verdict, t.last_status, t.last_error, t.last_run_at,
  t.last_started_at, t.last_success_at, t.last_nonzero_at, t.next_run_at, t.backoff_until, t.consecutive_failures,
  t.disabled_reason, t.memory
from sources s
left join source_state t on t.source_id = s.id
order by coalesce(t.last_run_at, ''), s.id;

-- name: has_sources
select 1
from penstock_migrations
where name = 'penstock-sources-1';

-- name: any_due
select 1
from sources s
left join source_state t on t.source_id = s.id
where s.enabled = 1
and coalesce(t.next_run_at, '') <= :now
and coalesce(t.backoff_until, '') <= :now
limit 1;

-- name: add_source
insert into sources (id, name, kind, enabled, created_at)
select coalesce(max(id), 0) + 1, :name, :kind, 1, :now
from sources
where true
on conflict do nothing;

-- name: add_state
insert into source_state (source_id)
values (:id)
on conflict do nothing;

-- name: started
update source_state
set last_started_at = :now
where source_id = :id;

-- name: advance
update source_state
set cursor = :cursor
where source_id = :id;

-- name: ended
update source_state
set verdict = :verdict, last_status = :status, last_error = :error, last_run_at = :started, last_started_at = :started,
  last_success_at = coalesce(:success, last_success_at), last_nonzero_at = coalesce(:nonzero, last_nonzero_at),
  next_run_at = :next, backoff_until = :backoff, consecutive_failures = :failures, disabled_reason = :disabled,
  memory = :memory
where source_id = :id;

-- name: skipped
update source_state
set verdict = 'skipped', last_status = 'skipped', last_error = :error, next_run_at = coalesce(:next, next_run_at),
  memory = :memory
where source_id = :id;

-- name: note_run
insert into source_runs (source_id, started_at, ended_at, verdict, error, candidates, inserted, changed, gone, back,
  pages, requests, refused, cursor_before, cursor_after)
values (:source_id, :started_at, :ended_at, :verdict, :error, :candidates, :inserted, :changed, :gone, :back,
  :pages, :requests, :refused, :cursor_before, :cursor_after)
on conflict (source_id, started_at) do nothing;

-- name: reset
update source_state
set cursor = null, memory = '{}', next_run_at = null, backoff_until = null, disabled_reason = null,
  consecutive_failures = 0
where source_id = :id;

-- name: run_now
update source_state
set next_run_at = null, backoff_until = null, disabled_reason = null
where source_id = :id;

-- name: enable
update sources
set enabled = :enabled
where id = :id;

-- name: find
select id
from sources
where name = :name;

-- name: runs
select started_at, ended_at, verdict, error, candidates, inserted, changed, gone, back, pages, requests, refused,
  cursor_before, cursor_after
from source_runs
where source_id = (select id from sources where name = :name)
order by started_at desc
limit :most;

-- name: stale
select s.name
from sources s
left join source_state t on t.source_id = s.id
where s.enabled = 1
and t.disabled_reason is null
and (t.last_run_at is null or t.last_run_at < :before)
order by s.name;

-- name: known
select item_id, content_hash, data, missed, gone_at, last_seen_at
from source_records
where source_id = :source
and item_id in (:i0, :i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12, :i13, :i14, :i15, :i16, :i17, :i18,
  :i19, :i20, :i21, :i22, :i23, :i24, :i25, :i26, :i27, :i28, :i29, :i30, :i31, :i32, :i33, :i34, :i35, :i36, :i37, :i38,
  :i39);

-- name: active
select item_id, content_hash, missed, last_seen_at
from source_records
where source_id = :source
and gone_at is null
and item_id > :after
order by item_id
limit :size;

-- name: save_record
insert into source_records (source_id, item_id, url, data, raw_json, content_hash, fetched_at, last_seen_at)
values (:source_id, :item_id, :url, :data, :raw_json, :content_hash, :fetched_at, :fetched_at)
on conflict (source_id, item_id) do update
set url = excluded.url, data = excluded.data, raw_json = excluded.raw_json, content_hash = excluded.content_hash,
  fetched_at = excluded.fetched_at, last_seen_at = excluded.last_seen_at, missed = 0, gone_at = null;

-- name: seen
update source_records
set last_seen_at = :now, missed = 0
where source_id = :source and item_id = :item;

-- name: missed
update source_records
set missed = missed + 1
where source_id = :source and item_id = :item;

-- name: gone
update source_records
set gone_at = :now, missed = missed + 1
where source_id = :source and item_id = :item;
