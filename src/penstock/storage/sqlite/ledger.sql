-- Group commits.

-- name: next_number
update penstock_tokens
set last = last + 1
where one = 1
returning last;
