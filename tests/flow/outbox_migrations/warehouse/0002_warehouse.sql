create table got (id bigint primary key, brand text not null, number bigint not null);
