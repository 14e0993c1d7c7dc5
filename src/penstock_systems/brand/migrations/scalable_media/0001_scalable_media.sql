create table sm_brands (
  id text primary key,
  slug text not null unique,
  fqdn text not null,
  settings text not null,
  created_at text not null
);

create table sm_requests (
  id text primary key,
  brand_id text not null references sm_brands (id),
  correlation_id text not null,
  keywords text not null,
  priority text not null,
  created_at text not null
);

-- `status` is draft, published, archived or failed; `stage` says where a draft is: writing, review, approved, publishing.
create table sm_content (
  id text primary key,
  brand_id text not null references sm_brands (id),
  keyword text not null,
  research_id text not null,
  correlation_id text not null,
  status text not null default 'draft',
  stage text not null default 'writing',
  reason text not null default '',
  title text not null default '',
  slug text not null default '',
  description text not null default '',
  key_points text not null default '[]',
  citations text not null default '[]',
  flags text not null default '[]',
  body text not null default '',
  content_html text not null default '',
  word_count bigint not null default 0,
  model text not null default '',
  prompt_hash text not null default '',
  reviewed_by text not null default '',
  published_at text,
  published_to text not null default '[]',
  posted_to text not null default '[]',
  created_at text not null,
  updated_at text not null
);

create unique index sm_content_keyword on sm_content (brand_id, keyword) where status in ('draft', 'published');

create index sm_content_status on sm_content (brand_id, status, created_at);

create index sm_content_stage on sm_content (stage, created_at);

create table sm_reviews (
  content_id text primary key references sm_content (id),
  decision text not null,
  reviewer text not null,
  note text not null,
  difference text not null,
  decided_at text not null
);

create table sm_failures (
  id text primary key,
  brand_id text not null references sm_brands (id),
  kind text not null,
  keyword text not null,
  reason text not null,
  failed_at text not null
);

create table sm_reports (
  id text primary key,
  machine text not null,
  agent text not null,
  text text not null,
  created_at text not null
);

create table sm_audits (
  id text primary key,
  brand_id text not null,
  stale bigint not null default 0,
  old bigint not null default 0,
  pending bigint not null default 0,
  waiting bigint not null default 0,
  dead_letters bigint not null default 0,
  problem text not null default '',
  audited_at text not null
);
