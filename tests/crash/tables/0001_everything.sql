-- No unique key on purpose: an effect that happens twice must show.
create table effects (
  queue text not null,
  number bigint not null,
  value bigint not null,
  pid integer not null
);

create index effects_by_number on effects (queue, number);

create table items (
  number bigint primary key,
  done integer not null default 0
);

create index items_left on items (number) where done = 0;
