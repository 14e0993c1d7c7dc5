create table sent (brand text not null, number bigint not null);
