-- What was made of a market: evaluations, debates, methods, tips, playbooks.

create table opportunity_evaluations (
  id text primary key,
  cluster_id bigint not null,
  lineage_id bigint not null,
  name text not null,
  verdict text not null,
  score double precision not null,
  reason text not null,
  facts text not null,
  made_by text not null,
  run_id text not null,
  created_at text not null
);

create index opportunity_evaluations_cluster on opportunity_evaluations (cluster_id, created_at);
create index opportunity_evaluations_score on opportunity_evaluations (score desc, id);
create index opportunity_evaluations_lineage on opportunity_evaluations (lineage_id, created_at);

create table opportunity_reference_apps (
  evaluation_id text not null,
  track_id bigint not null,
  role text not null,
  primary key (evaluation_id, track_id)
);

create table marketing_methods (
  id text primary key,
  name text not null,
  body text not null
);

create table case_studies (
  id text primary key,
  method_id text not null,
  name text not null,
  body text not null
);

create table opportunity_method_scores (
  evaluation_id text not null,
  method_id text not null,
  score double precision not null,
  reason text not null,
  primary key (evaluation_id, method_id)
);

create table debate_reports (
  id text primary key,
  evaluation_id text not null,
  transcript text not null,
  summary text not null,
  created_at text not null
);

create index debate_reports_evaluation on debate_reports (evaluation_id);

create table debate_messages (
  report_id text not null,
  seq bigint not null,
  agent text not null,
  text text not null,
  primary key (report_id, seq)
);

create table market_tips (
  id text primary key,
  cluster_id bigint not null,
  evaluation_id text not null,
  text text not null,
  created_at text not null
);

create index market_tips_cluster on market_tips (cluster_id);

create table marketing_playbooks (
  id text primary key,
  evaluation_id text not null,
  body text not null,
  created_at text not null
);

create index marketing_playbooks_evaluation on marketing_playbooks (evaluation_id);

create table research_tasks (
  id text primary key,
  kind text not null,
  subject text not null,
  status text not null check (status in ('waiting', 'running', 'done', 'failed', 'budget_exceeded')),
  score double precision,
  due_at text not null,
  updated_at text not null
);

create index research_tasks_waiting on research_tasks (status, score desc, due_at);
create index research_tasks_subject on research_tasks (subject);

create table harness_cycles (
  id text primary key,
  status text not null,
  wanted bigint not null,
  started bigint not null,
  started_at text not null,
  finished_at text
);

create index harness_cycles_started on harness_cycles (started_at);

create table harness_processor_log (
  id text primary key,
  cycle_id text not null,
  processor text not null,
  subject text not null,
  result text not null,
  created_at text not null
);

create index harness_processor_log_at on harness_processor_log (created_at);

create index opportunity_evaluations_at on opportunity_evaluations (created_at);
