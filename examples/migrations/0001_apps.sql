create table apps (
  track_id bigint primary key,
  name text not null,
  rating double precision
);
