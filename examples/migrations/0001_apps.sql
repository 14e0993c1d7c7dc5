create table apps (
  track_id integer primary key,
  name text not null,
  rating real
);
