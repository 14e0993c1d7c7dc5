create table pp_pages (
  content_id text not null,
  target text not null,
  fqdn text not null,
  slug text not null,
  title text not null,
  description text not null,
  state text not null,
  url text not null default '',
  remote_id text not null default '',
  published_at text not null,
  read_back_at text,
  primary key (content_id, target)
);

create index pp_pages_site on pp_pages (fqdn, target, state, published_at);
