-- Paid calls, and the sums they are part of.

-- Money is in billionths of a dollar. A sum that would grow past its bound is left as it is.
-- name: count
insert into penstock_spending (service, scope, period, calls, reserved, settled, began_at)
values (:service, :scope, :period, 1, :at_most, 0, :now)
on conflict (service, scope, period) do update
set calls = penstock_spending.calls + 1,
  reserved = penstock_spending.reserved + excluded.reserved
where penstock_spending.reserved + penstock_spending.settled + excluded.reserved <= :most;

-- name: sum
select settled, reserved
from penstock_spending
where service = :service
and scope = :scope
and period = :period;

-- Whether a live worker has a reservation that it may still reduce.
-- name: under_way
select 1
from penstock_calls
where service = :service
and state = 'reserved'
and worker in (
  select id
  from penstock_workers
)
limit 1;

-- name: reserve
insert into penstock_calls (
  id, service, provider, operation, run, correlation_id, worker, state, at_most, cost, created_at
)
values (
  :id, :service, :provider, :operation, :run, :correlation_id, :worker, 'reserved', :at_most, :at_most, :now
);

-- name: settle
update penstock_calls
set state = :state,
  units = :units,
  cost = :cost,
  settled_at = :now
where id = :id
and state = 'reserved';

-- name: settle_sum
update penstock_spending
set reserved = reserved - :at_most,
  settled = settled + :cost
where service = :service
and scope = :scope
and period = :period;
