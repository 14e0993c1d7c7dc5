-- What handlers wrote. No key is unique, so that an effect that happened twice shows.
create table effects (
  what text not null,
  amount integer not null default 0
);

create table stock (
  item text primary key,
  pieces integer not null,
  version integer not null default 1
);
