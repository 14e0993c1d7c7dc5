-- What people mark, collect, watch and share.

-- name: star
insert into app_stars (user_id, track_id, created_at)
values (:user, :id, :now)
on conflict (user_id, track_id) do nothing;

-- name: unstar
delete from app_stars
where user_id = :user
and track_id = :id;

-- name: star_publisher
insert into publisher_stars (user_id, developer_id, created_at)
values (:user, :id, :now)
on conflict (user_id, developer_id) do nothing;

-- name: unstar_publisher
delete from publisher_stars
where user_id = :user
and developer_id = :id;

-- name: starred_apps
-- What somebody starred, the newest first. Index: the key of app_stars.
select app.track_id, app.track_name, app.seller_name, app.primary_genre, app.average_rating, app.rating_count,
  app.rating_velocity_7d, app.competitiveness_score, app.formatted_price, app.enrichment_source, app.first_seen_at,
  app.last_seen_at, star.created_at
from app_stars as star
join app_registry as app
on app.track_id = star.track_id
where star.user_id = :user
order by star.created_at desc, app.track_id
limit :most;

-- name: starred_publishers
-- The publishers that somebody starred. Index: the key of publisher_stars.
select star.developer_id, publisher.name, publisher.website, star.created_at
from publisher_stars as star
left join developers as publisher
on publisher.developer_id = star.developer_id
where star.user_id = :user
order by star.created_at desc, star.developer_id
limit :most;

-- name: put_on_list
insert into app_lists (user_id, name, track_id, created_at)
values (:user, :list, :id, :now)
on conflict (user_id, name, track_id) do nothing;

-- name: take_off_list
delete from app_lists
where user_id = :user
and name = :list
and track_id = :id;

-- name: lists
-- The lists of somebody. Index: the key of app_lists.
select name, count(*) as apps, max(created_at) as changed_at
from app_lists
where user_id = :user
group by name
order by name
limit :most;

-- name: apps_on_list
-- What is on a list, in the order in which it was put there. Index: the key of app_lists.
select app.track_id, app.track_name, app.seller_name, app.primary_genre, app.average_rating, app.rating_count,
  app.rating_velocity_7d, app.competitiveness_score, app.formatted_price, app.enrichment_source, app.first_seen_at,
  app.last_seen_at, listed.created_at
from app_lists as listed
join app_registry as app
on app.track_id = listed.track_id
where listed.user_id = :user
and listed.name = :list
order by listed.created_at, app.track_id
limit :most;

-- name: track
insert into tracked_keywords (keyword, added_by, created_at)
values (:keyword, :user, :now)
on conflict (keyword) do nothing;

-- name: untrack
delete from tracked_keywords
where keyword = :keyword;

-- name: share
-- penstock: plain insert
insert into shared_reports (token, report_id, title, body, created_at, expires_at)
values (:token, :report_id, :title, :body, :now, :expires);

-- name: unshare
delete from shared_reports
where token = :token;

-- name: forget_accesses
delete from shared_report_access
where token = :token;

-- name: shared
select token, report_id, title, body, created_at, expires_at
from shared_reports
where token = :token
limit 1;

-- name: note_access
-- penstock: plain insert
insert into shared_report_access (id, token, accessed_at)
values (:id, :token, :now);

-- name: shares
-- What is shared, the newest first, and how often it was opened. Indexes: reading_shares_at, shared_report_access_token.
select token, report_id, title, created_at, expires_at, (
    select count(*)
    from shared_report_access as seen
    where seen.token = shared_reports.token
  ) as opened, (
    select max(seen.accessed_at)
    from shared_report_access as seen
    where seen.token = shared_reports.token
  ) as opened_at
from shared_reports
order by created_at desc, token
limit :most;
