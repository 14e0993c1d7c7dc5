-- What handlers leave behind. No unique key on purpose: an effect that happens twice must show.
create table effects (
  what text not null
);
