create table items (
  id integer primary key,
  name text not null unique,
  price real,
  photo blob
);
