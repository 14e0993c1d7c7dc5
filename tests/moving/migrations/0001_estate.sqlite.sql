create table shops (
  id integer primary key autoincrement,
  name text not null unique,
  parent integer references shops (id)
);

create table goods (
  code text primary key,
  shop integer references shops (id),
  price real,
  amount numeric,
  stock integer not null default 0,
  hidden integer not null default 0,
  photo blob,
  facts text,
  seen_at text,
  upper_code text generated always as (upper(code)) virtual
);

create table arrivals (code text not null, at text not null);

create trigger noted after insert on goods begin insert into arrivals (code, at) values (new.code, 'by trigger'); end;

create view shown as select code, price from goods where hidden = 0;

insert into shops (name) values ('the first, which a migration makes');
