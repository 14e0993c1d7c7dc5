-- What people mark, collect and share.

create table app_stars (
  user_id text not null,
  track_id bigint not null,
  created_at text not null,
  primary key (user_id, track_id)
);

create index app_stars_app on app_stars (track_id);

create table app_lists (
  user_id text not null,
  name text not null,
  track_id bigint not null,
  created_at text not null,
  primary key (user_id, name, track_id)
);

create table publisher_stars (
  user_id text not null,
  developer_id bigint not null,
  created_at text not null,
  primary key (user_id, developer_id)
);

create table shared_reports (
  token text primary key,
  report_id text not null,
  title text not null,
  body text not null,
  created_at text not null,
  expires_at text
);

create table shared_report_access (
  id text primary key,
  token text not null,
  accessed_at text not null
);

create index shared_report_access_token on shared_report_access (token, accessed_at);
