create table gf_research (keyword text primary key, pages bigint not null);
