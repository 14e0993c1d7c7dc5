-- Callers and what they spent. The price of a call is in the ledger, api_calls_ledger, under the same id.

create table gateway_keys (
  name text primary key,
  hash text not null unique,
  settings text not null,
  created_at text not null,
  revoked_at text
);

create table gateway_spend (
  id text primary key,
  at text not null,
  caller text not null,
  provider text not null,
  model text not null,
  prompt_tokens bigint,
  completion_tokens bigint,
  usd_reserved double precision not null,
  usd double precision,
  status text not null,
  correlation text,
  tags text,
  cached bigint not null default 0,
  replay_of text
);

create index gateway_spend_at on gateway_spend (at);

create index gateway_spend_correlation on gateway_spend (correlation, at);

create table gateway_cache (
  hash text primary key,
  call_id text not null,
  content_type text not null,
  body text not null,
  expires_at text not null
);

create index gateway_cache_expires on gateway_cache (expires_at);
