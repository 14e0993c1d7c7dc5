-- What the founder's scores are made of: what users type, when apps were updated, what recent reviews say, and how much of a
-- market's keywords was searched.

alter table app_registry add column version_released_at text;
alter table app_registry add column reviews_read bigint;
alter table app_registry add column reviews_unhappy bigint;

-- In how many titles a keyword is, and after how many letters the store completes it: 0 if it never does.
alter table crawl_keywords add column titles bigint not null default 1;
alter table crawl_keywords add column typed bigint;
alter table crawl_keywords add column typed_at text;
alter table crawl_keywords add column typed_due text;

drop index crawl_keywords_work;
create index crawl_keywords_work on crawl_keywords (status, priority desc, titles desc, created_at, keyword);
create index crawl_keywords_untyped on crawl_keywords (typed_due, keyword) where typed_due is not null;

alter table market_clusters add column scores text not null default 'article 1';
alter table market_clusters add column dissatisfaction double precision;
alter table market_clusters add column room double precision;
alter table market_clusters add column coverage double precision not null default 1;
alter table market_clusters add column franchise text;

alter table cluster_snapshots add column scores text not null default 'article 1';
alter table cluster_snapshots add column coverage double precision not null default 1;

-- A belief says what it rests on, since when it is held, and how often it was confirmed and refuted.
alter table agent_core_beliefs add column evidence text not null default '';
alter table agent_core_beliefs add column since text;
alter table agent_core_beliefs add column confirmed bigint not null default 0;
alter table agent_core_beliefs add column refuted bigint not null default 0;
update agent_core_beliefs set since = updated_at where since is null;
