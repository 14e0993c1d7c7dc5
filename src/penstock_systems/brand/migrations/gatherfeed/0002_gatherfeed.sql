create table gf_research (
  id text primary key,
  topic text not null,
  title text not null,
  content text not null,
  source text not null,
  tags text not null,
  project text not null,
  is_complete bigint not null,
  created_at text not null,
  updated_at text not null
);

create unique index gf_research_topic on gf_research (topic, project);
