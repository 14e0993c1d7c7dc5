-- `state` is due, sending, posted, unknown, missed or failed. `intent_at` is that of the first call whose outcome is open.
create table sg_posts (
  id text primary key,
  content_id text not null,
  brand_slug text not null,
  platform text not null,
  title text not null,
  text text not null,
  url text not null,
  state text not null default 'due',
  remote_id text not null default '',
  error text not null default '',
  intent_at bigint,
  due_at text not null,
  created_at text not null,
  updated_at text not null
);

create unique index sg_posts_content on sg_posts (content_id, platform);

create index sg_posts_state on sg_posts (state, due_at);
