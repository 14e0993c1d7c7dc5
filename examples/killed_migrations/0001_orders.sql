create table payments (number integer not null);

create table receipts (number integer not null);
