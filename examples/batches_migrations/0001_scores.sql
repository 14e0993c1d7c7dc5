create table scores (number bigint primary key, score bigint not null);
