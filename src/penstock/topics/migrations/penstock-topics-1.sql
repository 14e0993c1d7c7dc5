-- Messages whose order is kept, and published events that a subscription can be given again. Times are microseconds.

create table message_order (
  queue text not null,
  message_id text not null,
  key text not null,
  position bigint not null,
  primary key (queue, message_id)
);

create index message_order_next on message_order (queue, key, position, message_id);

create table topic_events (
  topic text not null,
  id text not null,
  at bigint not null,
  type text not null,
  body text not null,
  primary key (topic, id)
);

create index topic_events_at on topic_events (topic, at, id);
