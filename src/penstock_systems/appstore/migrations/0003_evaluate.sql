-- What the agents found, what they remember and what they hold to be true.

create table agent_ledger (
  id text primary key,
  agent text not null,
  version text not null,
  subject_type text not null,
  subject_id text not null,
  score double precision,
  explanation text not null,
  inputs text not null,
  inputs_hash text not null,
  created_at text not null,
  unique (agent, subject_type, subject_id, inputs_hash)
);

create index agent_ledger_subject on agent_ledger (subject_type, subject_id, created_at);
create index agent_ledger_at on agent_ledger (created_at);

create table agent_memory (
  agent text not null,
  key text not null,
  value text not null,
  updated_at text not null,
  primary key (agent, key)
);

create table agent_core_beliefs (
  agent text not null,
  belief text not null,
  strength double precision not null,
  updated_at text not null,
  primary key (agent, belief)
);

create table design_concepts (
  id text primary key,
  cluster_id bigint not null,
  title text not null,
  body text not null,
  made_by text not null,
  created_at text not null
);

create index design_concepts_cluster on design_concepts (cluster_id);
