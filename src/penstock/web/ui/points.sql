-- What pages ask of data points.

-- name: rates
select at, double3
from points
where blob2 = 'controller'
and blob3 = :name
order by at desc
limit 300;
