-- No unique key on purpose: an effect that happens twice must show.
create table effects (
  queue text not null,
  number integer not null,
  pid integer not null
);
