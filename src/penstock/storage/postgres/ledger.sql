-- Group commits.

-- name: next_number
select nextval('penstock.penstock_tokens');

-- name: note_number
insert into penstock_numbers (worker, number, noted_at)
values (:worker, :number, :now)
on conflict (worker) do update
set number = excluded.number,
  noted_at = excluded.noted_at;

-- Waits for the transaction that is in doubt: as long as it is under way it holds this row.
-- name: read_number
select number
from penstock_numbers
where worker = :worker
for update;
