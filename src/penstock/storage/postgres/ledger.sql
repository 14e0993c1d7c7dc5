-- Group commits.

-- name: next_number
select nextval('penstock.penstock_tokens');

-- name: note_number
insert into penstock_numbers (worker, number, noted_at)
values (:worker, :number, :now)
on conflict (worker) do update
set number = excluded.number,
  noted_at = excluded.noted_at;

-- Only of a transaction that has changed something: one that has not can be run again.
-- name: note_changes
insert into penstock_numbers (worker, number, noted_at)
select cast(:worker as bigint), cast(:number as bigint), cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)
where pg_current_xact_id_if_assigned() is not null
on conflict (worker) do update
set number = excluded.number,
  noted_at = excluded.noted_at;

-- Waits for the transaction that is in doubt: as long as it is under way it holds this row.
-- name: read_number
select number
from penstock_numbers
where worker = :worker
for update;
