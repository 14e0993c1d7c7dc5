-- Notes about the items of controllers.

-- name: note
insert into penstock_items (controller, item, state, attempts, due, error)
values (:controller, :item, :state, :attempts, :due, :error)
on conflict (controller, item) do update
set state = excluded.state,
  attempts = excluded.attempts,
  due = excluded.due,
  error = excluded.error;

-- name: drop
delete from penstock_items
where controller = :controller
and item = :item;

-- name: held
select controller, item, state, attempts, due, null
from penstock_items
where controller = :controller
limit :limit;

-- name: forget
delete from penstock_items
where controller = :controller
and state = :state;
