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
  cluster_id bigint,
  status text not null check (status in ('waiting', 'running', 'done', 'failed', 'budget_exceeded')),
  score double precision,
  due_at text not null,
  updated_at text not null
);

create index research_tasks_waiting on research_tasks (kind, status, score desc, due_at, id);
create index research_tasks_subject on research_tasks (subject, kind, due_at);

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

-- Ways to find users that need no fortune, and an example of each. The examples are made up to show what is meant; they
-- report of nobody and hold no figures.
insert into marketing_methods (id, name, body) values
  ('store-search', 'The words people search for', 'Put the keywords of the market into title and subtitle, the most wanted first, and change one of them at a time. It costs nothing, works while you sleep, and is how most people find an app.'),
  ('search-ads', 'Advertisements beside the search', 'Pay for the first place on a few keywords, beginning with those for which the apps that rank are weak. Stop whatever brings no users within a week.'),
  ('unhappy-users', 'What others leave undone', 'Read what people dislike about the leading apps, do exactly that better, and say so in the first line and on the first screenshot.'),
  ('forums', 'Places where people ask', 'Answer questions where the people of this market already talk, for a month, before you mention what you have built.'),
  ('clips', 'Short films', 'Show the one moment in which the app is worth having, in less than twenty seconds, and do it every other day. It suits what can be seen: games, pictures, food, movement.'),
  ('articles', 'Articles for many small questions', 'Write one honest page for each of the many things people search for. Each brings few readers; together they bring them for years.'),
  ('neighbours', 'Neighbouring markets', 'Agree with the makers of apps that the same people use for something else to recommend each other.'),
  ('languages', 'More languages', 'Translate the store page first, and the app where the page is read. Where the leading apps speak one language only, the others are open.'),
  ('early-ratings', 'Ratings from the first day', 'Ask for a rating at the moment in which the app has just helped, never at the start, and answer everybody who is unhappy.'),
  ('price', 'Another way to pay', 'Where the leading apps all ask for money in the same way, offer the other one: pay once instead of every month, or try before paying.');

insert into case_studies (id, method_id, name, body) values
  ('example-store-search', 'store-search', 'A tuner that was called by its brand', 'An example, not a report. An app for tuning a ukulele is called by a brand nobody knows. Its maker puts "ukulele tuner" before the brand, and the subtitle names what players look for next. The app is the same; people who search for it now see it.'),
  ('example-search-ads', 'search-ads', 'One keyword at a time', 'An example, not a report. The maker of a packing list pays for five keywords and sees after a week that one of them brings users who stay. The other four are stopped, and the price of the one is raised until it no longer pays.'),
  ('example-unhappy-users', 'unhappy-users', 'The export that nobody offered', 'An example, not a report. Reviews of three budget apps ask for the same thing, a way to get the own figures out. A newcomer has that from the first version and says so on its first screenshot.'),
  ('example-forums', 'forums', 'A month of answers', 'An example, not a report. Somebody who keeps bees answers questions in a forum of beekeepers. When the hive diary is ready, people there try it because they know who made it.'),
  ('example-clips', 'clips', 'The moment when the puzzle falls into place', 'An example, not a report. A puzzle game films nothing but the last move of each level. Whoever sees the pieces fall wants to do it.'),
  ('example-articles', 'articles', 'Forty plants, forty pages', 'An example, not a report. An app that reminds people to water plants has a page for each plant, with what it needs in winter. Whoever looks for that finds the app beside the answer.'),
  ('example-neighbours', 'neighbours', 'Two apps for one evening', 'An example, not a report. An app with recipes and one with a shopping list send people to each other. Neither loses any: they do different things for the same evening.'),
  ('example-languages', 'languages', 'The page before the app', 'An example, not a report. The page of a sleep diary is translated into four languages. Two of them bring readers, and only for these the app is translated too.'),
  ('example-early-ratings', 'early-ratings', 'After the first success', 'An example, not a report. A running coach asks for a rating when somebody has run further than ever before, and at no other time.'),
  ('example-price', 'price', 'Paid once', 'An example, not a report. All document scanners ask for a subscription. One is sold for a single price, and says so first.');
