create table payments (number bigint not null);

create table receipts (number bigint not null);
