SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA penstock;
CREATE FUNCTION penstock.body_as_text(body bytea, type text, reason text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
  if type <> 'bytes' and reason <> 'corrupt' then
    return cast(cast(convert_from(body, 'UTF8') as json) as text);
  end if;
  return 'X' || chr(39) || upper(encode(body, 'hex')) || chr(39);
exception when others then
  return 'X' || chr(39) || upper(encode(body, 'hex')) || chr(39);
end
$$;
CREATE FUNCTION penstock.keep_count() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    AS $$
begin
  if tg_op = 'TRUNCATE' then
    update penstock.penstock_counts set total = 0 where name = tg_argv[0];
  elsif tg_op = 'INSERT' then
    update penstock.penstock_counts set total = total + (select count(1) from changed) where name = tg_argv[0];
  else
    update penstock.penstock_counts set total = total - (select count(1) from changed) where name = tg_argv[0];
  end if;
  return null;
end
$$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE penstock.penstock_calls (
    id bytea NOT NULL,
    service text NOT NULL,
    provider text NOT NULL,
    operation text NOT NULL,
    run text,
    correlation_id bytea,
    worker bigint NOT NULL,
    state text NOT NULL,
    at_most bigint NOT NULL,
    units bigint,
    cost bigint NOT NULL,
    created_at bigint NOT NULL,
    settled_at bigint
);
CREATE TABLE penstock.penstock_workers (
    id bigint NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    started_at bigint NOT NULL,
    number bigint DEFAULT 0 NOT NULL
);
CREATE VIEW penstock.api_calls_ledger AS
 SELECT encode(penstock_calls.id, 'hex'::text) AS id,
    penstock_calls.service,
    penstock_calls.provider,
    penstock_calls.operation,
    penstock_calls.units,
    ((penstock_calls.cost)::double precision / (1000000000.0)::double precision) AS cost,
    ((penstock_calls.at_most)::double precision / (1000000000.0)::double precision) AS at_most,
    encode(penstock_calls.correlation_id, 'hex'::text) AS correlation_id,
    penstock_calls.run,
        CASE
            WHEN ((penstock_calls.state = 'reserved'::text) AND (NOT (EXISTS ( SELECT 1
               FROM penstock.penstock_workers
              WHERE (penstock_workers.id = penstock_calls.worker))))) THEN 'unknown'::text
            ELSE penstock_calls.state
        END AS state,
    to_char((to_timestamp(((penstock_calls.created_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS created_at,
    to_char((to_timestamp(((penstock_calls.settled_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS settled_at
   FROM penstock.penstock_calls;
CREATE TABLE penstock.penstock_dead (
    seq bigint NOT NULL,
    id bytea NOT NULL,
    handler text NOT NULL,
    queue text NOT NULL,
    priority bigint NOT NULL,
    type text NOT NULL,
    source text NOT NULL,
    correlation_id bytea NOT NULL,
    causation_id bytea,
    hops bigint NOT NULL,
    depth bigint NOT NULL,
    sent_at bigint NOT NULL,
    checksum bigint NOT NULL,
    body bytea NOT NULL,
    flags bigint NOT NULL,
    replay_of bytea,
    replay_count bigint NOT NULL,
    attempts bigint NOT NULL,
    crashes bigint NOT NULL,
    reason text NOT NULL,
    error_class text,
    error_message text,
    first_failed_at bigint,
    failed_at bigint NOT NULL,
    warned_at bigint,
    edited_at bigint,
    replayed_at bigint,
    resolved_at bigint,
    resolution text,
    note text
);
CREATE VIEW penstock.dead_messages AS
 SELECT penstock_dead.seq AS id,
    encode(penstock_dead.id, 'hex'::text) AS event_id,
    penstock_dead.queue,
    (penstock_dead.queue || '-dlq'::text) AS dlq,
    penstock_dead.handler,
    penstock_dead.type,
    penstock_dead.source,
    penstock.body_as_text(penstock_dead.body, penstock_dead.type, penstock_dead.reason) AS payload,
    penstock_dead.attempts,
    penstock_dead.crashes,
    to_char((to_timestamp(((penstock_dead.failed_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS failed_at,
    to_char((to_timestamp(((penstock_dead.first_failed_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS first_failed_at,
    to_char((to_timestamp(((penstock_dead.sent_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS sent_at,
    to_char((to_timestamp(((penstock_dead.replayed_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS replayed_at,
    penstock_dead.resolution,
    penstock_dead.note,
    encode(penstock_dead.correlation_id, 'hex'::text) AS correlation_id,
    encode(penstock_dead.causation_id, 'hex'::text) AS causation_id,
    encode(penstock_dead.replay_of, 'hex'::text) AS replay_of,
    (json_build_object('event_id', encode(penstock_dead.id, 'hex'::text), 'type', penstock_dead.type, 'source', penstock_dead.source, 'timestamp', to_char((to_timestamp(((penstock_dead.sent_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text), 'correlation_id', encode(penstock_dead.correlation_id, 'hex'::text), 'causation_id', encode(penstock_dead.causation_id, 'hex'::text), 'hops', penstock_dead.hops, 'depth', penstock_dead.depth, 'replay_of', encode(penstock_dead.replay_of, 'hex'::text)))::text AS envelope,
    penstock_dead.error_class,
    penstock_dead.error_message,
    penstock_dead.replay_count,
    penstock_dead.reason
   FROM penstock.penstock_dead;
CREATE TABLE penstock.penstock_classes (
    class text NOT NULL,
    tag text NOT NULL,
    applied_at bigint NOT NULL
);
CREATE TABLE penstock.penstock_counters (
    queue text NOT NULL,
    worker bigint NOT NULL,
    sent bigint DEFAULT 0 NOT NULL,
    acked bigint DEFAULT 0 NOT NULL,
    dead bigint DEFAULT 0 NOT NULL,
    purged bigint DEFAULT 0 NOT NULL,
    expired bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL
);
CREATE TABLE penstock.penstock_counts (
    name text NOT NULL,
    total bigint NOT NULL
);
ALTER TABLE penstock.penstock_dead ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME penstock.penstock_dead_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE penstock.penstock_facts (
    name text NOT NULL,
    value text
);
CREATE TABLE penstock.penstock_handlers (
    worker bigint NOT NULL,
    queue text NOT NULL,
    type text NOT NULL,
    handler text NOT NULL
);
CREATE TABLE penstock.penstock_history (
    seq bigint NOT NULL,
    noted_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    started_at bigint NOT NULL,
    correlation_id bytea NOT NULL,
    id bytea NOT NULL,
    causation_id bytea,
    label bigint NOT NULL,
    error text
);
ALTER TABLE penstock.penstock_history ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME penstock.penstock_history_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE penstock.penstock_items (
    controller text NOT NULL,
    item text NOT NULL,
    state text NOT NULL,
    attempts bigint NOT NULL,
    due bigint NOT NULL,
    error text
);
CREATE TABLE penstock.penstock_labels (
    label bigint NOT NULL,
    kind text NOT NULL,
    service text NOT NULL,
    queue text NOT NULL,
    name text NOT NULL,
    source text NOT NULL,
    attempt bigint NOT NULL,
    status text NOT NULL,
    seen bigint NOT NULL
);
ALTER TABLE penstock.penstock_labels ALTER COLUMN label ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME penstock.penstock_labels_label_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE penstock.penstock_messages (
    seq bigint NOT NULL,
    id bytea NOT NULL,
    handler text DEFAULT ''::text NOT NULL,
    queue text NOT NULL,
    priority bigint NOT NULL,
    due bigint NOT NULL,
    token bigint DEFAULT 0 NOT NULL,
    worker bigint,
    attempts bigint DEFAULT 0 NOT NULL,
    crashes bigint DEFAULT 0 NOT NULL,
    rounds bigint DEFAULT 0 NOT NULL,
    type text NOT NULL,
    source text NOT NULL,
    correlation_id bytea NOT NULL,
    causation_id bytea,
    hops bigint NOT NULL,
    depth bigint NOT NULL,
    sent_at bigint NOT NULL,
    checksum bigint NOT NULL,
    body bytea NOT NULL,
    flags bigint DEFAULT 0 NOT NULL,
    expires bigint,
    replay_of bytea,
    replays bigint DEFAULT 0 NOT NULL,
    first_failed_at bigint,
    last_failed_at bigint,
    error_class text,
    error_message text
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0.1');
ALTER TABLE penstock.penstock_messages ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME penstock.penstock_messages_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE penstock.penstock_migrations (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at bigint NOT NULL
);
CREATE TABLE penstock.penstock_minutes (
    minute bigint NOT NULL,
    label bigint NOT NULL,
    count bigint NOT NULL
);
CREATE TABLE penstock.penstock_numbers (
    worker bigint NOT NULL,
    number bigint NOT NULL,
    noted_at bigint NOT NULL
);
CREATE TABLE penstock.penstock_objects (
    class text NOT NULL,
    name text NOT NULL,
    state bytea NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    owner bigint,
    wanted bigint,
    hint text,
    alarm_lost bigint DEFAULT 0 NOT NULL,
    created_at bigint NOT NULL,
    saved_at bigint NOT NULL
);
CREATE TABLE penstock.penstock_once (
    scope bytea NOT NULL,
    key text NOT NULL,
    result bytea NOT NULL,
    saved_at bigint NOT NULL
);
CREATE TABLE penstock.penstock_points (
    seq bigint NOT NULL,
    dataset text NOT NULL,
    at text NOT NULL COLLATE pg_catalog."C",
    sort bigint NOT NULL,
    double1 double precision,
    double2 double precision,
    double3 double precision,
    double4 double precision,
    double5 double precision,
    double6 double precision,
    double7 double precision,
    double8 double precision,
    double9 double precision,
    double10 double precision,
    double11 double precision,
    double12 double precision,
    double13 double precision,
    double14 double precision,
    double15 double precision,
    double16 double precision,
    double17 double precision,
    double18 double precision,
    double19 double precision,
    double20 double precision
);
ALTER TABLE penstock.penstock_points ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME penstock.penstock_points_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE penstock.penstock_queues (
    name text NOT NULL,
    paused bigint DEFAULT 0 NOT NULL,
    retries bigint NOT NULL,
    retry_first_seconds double precision NOT NULL,
    retry_longest_seconds double precision NOT NULL,
    wall_seconds double precision NOT NULL,
    crashes_max bigint NOT NULL,
    batch bigint DEFAULT 1 NOT NULL,
    wait_seconds double precision DEFAULT 0.0 NOT NULL,
    parallel bigint,
    parallel_tuned bigint,
    rate double precision,
    rate_tuned double precision,
    next_start bigint DEFAULT 0 NOT NULL,
    messages_max bigint,
    bytes_max bigint,
    per_second_max bigint,
    second bigint DEFAULT 0 NOT NULL,
    second_sent bigint DEFAULT 0 NOT NULL,
    retention_seconds double precision,
    dead_retention_seconds double precision,
    accepts text,
    watched bigint DEFAULT 0 NOT NULL
);
CREATE TABLE penstock.penstock_rolled (
    span text NOT NULL,
    at text NOT NULL COLLATE pg_catalog."C",
    dataset text NOT NULL,
    sort bigint NOT NULL,
    place bigint NOT NULL,
    count bigint NOT NULL,
    sum double precision,
    min double precision,
    max double precision
);
CREATE TABLE penstock.penstock_runs (
    key bytea NOT NULL,
    workflow text NOT NULL,
    id text NOT NULL,
    state text NOT NULL,
    reason text,
    input bytea NOT NULL,
    result bytea,
    error text,
    generation bigint DEFAULT 0 NOT NULL,
    priority bigint NOT NULL,
    correlation_id bytea NOT NULL,
    parent bytea,
    parent_step text,
    created_at bigint NOT NULL,
    ended_at bigint,
    forget_at bigint
);
CREATE TABLE penstock.penstock_samples (
    kind text NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE penstock.penstock_seen (
    id bytea NOT NULL,
    queue text NOT NULL,
    type text NOT NULL,
    source text NOT NULL,
    seen_at bigint NOT NULL,
    processed_at bigint
);
CREATE TABLE penstock.penstock_signals (
    seq bigint NOT NULL,
    run bytea NOT NULL,
    name text NOT NULL,
    payload bytea NOT NULL,
    sent_at bigint NOT NULL
);
ALTER TABLE penstock.penstock_signals ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME penstock.penstock_signals_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE penstock.penstock_sizes (
    day text NOT NULL,
    at bigint NOT NULL,
    bytes bigint NOT NULL
);
CREATE TABLE penstock.penstock_sorts (
    sort bigint NOT NULL,
    until text NOT NULL COLLATE pg_catalog."C",
    dataset text NOT NULL,
    index1 text,
    blob1 text,
    blob2 text,
    blob3 text,
    blob4 text,
    blob5 text,
    blob6 text,
    blob7 text,
    blob8 text,
    blob9 text,
    blob10 text,
    blob11 text,
    blob12 text,
    blob13 text,
    blob14 text,
    blob15 text,
    blob16 text,
    blob17 text,
    blob18 text,
    blob19 text,
    blob20 text
);
CREATE TABLE penstock.penstock_spending (
    service text NOT NULL,
    scope text NOT NULL,
    period text NOT NULL,
    calls bigint NOT NULL,
    reserved bigint NOT NULL,
    settled bigint NOT NULL,
    began_at bigint NOT NULL
);
CREATE TABLE penstock.penstock_steps (
    run bytea NOT NULL,
    "position" bigint NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    state text NOT NULL,
    attempts bigint NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint,
    due bigint,
    result bytea,
    error text
);
CREATE TABLE penstock.penstock_tallies (
    day text NOT NULL COLLATE pg_catalog."C",
    dataset text NOT NULL,
    written bigint NOT NULL,
    dropped bigint NOT NULL,
    refused bigint NOT NULL,
    asked bigint NOT NULL,
    bytes bigint NOT NULL
);
CREATE TABLE penstock.penstock_ticks (
    schedule text NOT NULL,
    due bigint NOT NULL,
    fired_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    status text NOT NULL,
    phase text,
    missed bigint DEFAULT 0 NOT NULL,
    rows_read bigint,
    rows_written bigint,
    error text
);
CREATE TABLE penstock.penstock_timers (
    seq bigint NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    due bigint NOT NULL,
    scheduled bigint NOT NULL,
    number bigint DEFAULT 0 NOT NULL,
    queue text NOT NULL,
    type text NOT NULL,
    rule text,
    paused bigint DEFAULT 0 NOT NULL
);
ALTER TABLE penstock.penstock_timers ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME penstock.penstock_timers_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE SEQUENCE penstock.penstock_tokens
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE penstock.penstock_usage (
    month text NOT NULL,
    task text NOT NULL,
    statement text NOT NULL,
    executions bigint NOT NULL,
    rows_read bigint NOT NULL,
    rows_written bigint NOT NULL,
    pages bigint NOT NULL,
    steps bigint NOT NULL,
    micros bigint NOT NULL
);
ALTER TABLE penstock.penstock_workers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME penstock.penstock_workers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW penstock.pipeline_log AS
 SELECT ((penstock_ticks.schedule || '@'::text) || penstock_ticks.due) AS id,
    penstock_ticks.schedule AS task,
    ( SELECT ((penstock_timers.rule)::json ->> 'expression'::text)
           FROM penstock.penstock_timers
          WHERE ((penstock_timers.kind = 'cron'::text) AND (penstock_timers.name = penstock_ticks.schedule))) AS cron,
    to_char((to_timestamp(((penstock_ticks.due / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS due_at,
    to_char((to_timestamp(((penstock_ticks.fired_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS created_at,
    to_char((to_timestamp(((penstock_ticks.started_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS started_at,
    to_char((to_timestamp(((penstock_ticks.finished_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS finished_at,
    penstock_ticks.status,
    penstock_ticks.phase,
    penstock_ticks.missed,
    penstock_ticks.rows_read,
    penstock_ticks.rows_written,
    penstock_ticks.error
   FROM penstock.penstock_ticks;
CREATE VIEW penstock.processed_events AS
 SELECT encode(penstock_seen.id, 'hex'::text) AS event_id,
    penstock_seen.queue AS consumer,
    penstock_seen.type,
    penstock_seen.source,
    to_char((to_timestamp(((penstock_seen.processed_at / 1000000))::double precision) AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'::text) AS processed_at
   FROM penstock.penstock_seen
  WHERE (penstock_seen.processed_at IS NOT NULL);
CREATE TABLE public.shipped (
    item text NOT NULL
);
INSERT INTO penstock.penstock_classes VALUES ('Till', 'v1', 1795003200000000);
INSERT INTO penstock.penstock_counters VALUES ('workflow.approval', 2, 3, 0, 0, 0, 0, 207);
INSERT INTO penstock.penstock_counters VALUES ('orders', 1, 0, 2, 2, 0, 0, -73);
INSERT INTO penstock.penstock_counters VALUES ('workflow.approval', 1, 0, 1, 0, 0, 0, -67);
INSERT INTO penstock.penstock_counters VALUES ('orders', 2, 8, 0, 0, 0, 0, 142);
INSERT INTO penstock.penstock_dead OVERRIDING SYSTEM VALUE VALUES (1, '\x01a1ee8732007001a405ac28105b512f', '', 'orders', 1, 'order', 'shop', '\x01a1ee8732007001a405ac28105b512f', NULL, 1, 0, 1795003200000000, 2393540077, '\x7b226974656d223a2264656164206f6e65227d', 0, NULL, 0, 1, 0, 'permanent', 'Gone', 'nothing takes it', 1795003200000000, 1795003200000000, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_dead OVERRIDING SYSTEM VALUE VALUES (2, '\x01a1ee8732007002825da559404a4b4e', '', 'orders', 1, 'order', 'shop', '\x01a1ee8732007002825da559404a4b4e', NULL, 1, 0, 1795003200000000, 1438768701, '\x7b226974656d223a22646561642074776f227d', 0, NULL, 0, 1, 0, 'permanent', 'Gone', 'nothing takes it', 1795003200000000, 1795003200000000, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_facts VALUES ('schema', '3');
INSERT INTO penstock.penstock_facts VALUES ('identity', '8c5bdb7411b674214ada75da7e6b7c22');
INSERT INTO penstock.penstock_facts VALUES ('seen_at', '1795010501479144');
INSERT INTO penstock.penstock_handlers VALUES (1, 'orders', 'order', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'orders', 'order', 'ship');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Remembered', 'object.told', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Remembered', 'object.alarm', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Remembered', 'object.told', 'told');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Remembered', 'object.alarm', 'alarm');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Remembered-dlq', 'message.died', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Remembered-dlq', 'message.died', 'dead');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Till', 'object.told', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Till', 'object.alarm', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Till', 'object.told', 'told');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Till', 'object.alarm', 'alarm');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Till-dlq', 'message.died', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'object.Till-dlq', 'message.died', 'dead');
INSERT INTO penstock.penstock_handlers VALUES (1, 'cron.sweep', 'cron.tick', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'cron.sweep', 'cron.tick', 'sweep');
INSERT INTO penstock.penstock_handlers VALUES (1, 'cron.sweep-dlq', 'message.died', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'cron.sweep-dlq', 'message.died', 'dead');
INSERT INTO penstock.penstock_handlers VALUES (1, 'workflow.approval', 'workflow.run', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'workflow.approval', 'workflow.run', 'approval');
INSERT INTO penstock.penstock_handlers VALUES (1, 'workflow.approval-dlq', 'message.died', '');
INSERT INTO penstock.penstock_handlers VALUES (1, 'workflow.approval-dlq', 'message.died', 'dead');
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (1, 1795003200000000, 1795003200000000, 1795003200000000, '\x01a1ee873200700084df5064371f247b', '\x01a1ee873200700084df5064371f247b', NULL, 1, NULL);
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (2, 1795003200000000, 1795003200000000, 1795003200000000, '\x01a1ee8732007001a405ac28105b512f', '\x01a1ee8732007001a405ac28105b512f', NULL, 2, 'Gone: nothing takes it');
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (3, 1795003200000000, 1795003200000000, 1795003200000000, '\x01a1ee8732007002825da559404a4b4e', '\x01a1ee8732007002825da559404a4b4e', NULL, 2, 'Gone: nothing takes it');
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (4, 1795003200000000, 1795003200000000, 1795003200000000, '\x0000000000008570966577a0ca5b97ed', '\x0000000000008570966577a0ca5b97ed', NULL, 1, NULL);
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (5, 1795003200000000, 1795003200000000, 1795003200000000, '\x000000000000844fbbd58fb55ddd17ef', '\x000000000000844fbbd58fb55ddd17ef', NULL, 3, NULL);
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (6, 1795003200000000, 1795003200000000, 1795003200000000, '\x0000000000008da5bc47c6b5df4e18e3', '\x0000000000008da5bc47c6b5df4e18e3', NULL, 3, NULL);
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (7, 1795003200000000, 1795003200000000, 1795003200000000, '\x000000000000848683a07bb22af883bc', '\x000000000000848683a07bb22af883bc', NULL, 3, NULL);
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (8, 1795003201000000, 1795003201000000, 1795003201000000, '\x000000000000848683a07bb22af883bc', '\x000000000000848683a07bb22af883bc', NULL, 3, NULL);
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (9, 1795010401000000, 1795010401000000, 1795010401000000, '\x000000000000848683a07bb22af883bc', '\x000000000000848683a07bb22af883bc', NULL, 4, NULL);
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (10, 1795010497370271, 1795010497370271, 1795010497370271, '\x000000000000844fbbd58fb55ddd17ef', '\x000000000000844fbbd58fb55ddd17ef', NULL, 3, NULL);
INSERT INTO penstock.penstock_history OVERRIDING SYSTEM VALUE VALUES (11, 1795010528370271, 1795010528370271, 1795010528370271, '\x01a1eef704727000b63a017a36c0aea2', '\x01a1eef704727000b63a017a36c0aea2', NULL, 6, 'ConnectionError: no answer');
INSERT INTO penstock.penstock_labels OVERRIDING SYSTEM VALUE VALUES (1, 'message', 'shop', 'orders', 'order', 'shop', 1, 'acked', 1794960000000000);
INSERT INTO penstock.penstock_labels OVERRIDING SYSTEM VALUE VALUES (2, 'message', 'shop', 'orders', 'order', 'shop', 1, 'dead', 1794960000000000);
INSERT INTO penstock.penstock_labels OVERRIDING SYSTEM VALUE VALUES (4, 'message', 'shop', 'workflow.approval', 'workflow.run', 'shop', 1, 'acked', 1794960000000000);
INSERT INTO penstock.penstock_labels OVERRIDING SYSTEM VALUE VALUES (3, 'message', 'shop', 'workflow.approval', 'workflow.run', 'shop', 1, 'later', 1794960000000000);
INSERT INTO penstock.penstock_labels OVERRIDING SYSTEM VALUE VALUES (6, 'message', 'shop', 'orders', 'order', 'shop', 1, 'retried', 1794960000000000);
INSERT INTO penstock.penstock_messages OVERRIDING SYSTEM VALUE VALUES (2, '\x0000000000008da5bc47c6b5df4e18e3', '', 'workflow.approval', 1, 1795089600000000, 11, NULL, 0, 0, 1, 'workflow.run', 'shop', '\x0000000000008da5bc47c6b5df4e18e3', NULL, 0, 0, 1795003200000000, 1818154985, '\x7b2272756e223a227761697473222c22696e707574223a7b226974656d223a227761697473227d2c2267656e65726174696f6e223a302c226368696c64223a66616c73657d', 0, NULL, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_messages OVERRIDING SYSTEM VALUE VALUES (1, '\x000000000000844fbbd58fb55ddd17ef', '', 'workflow.approval', 1, 1795017697370271, 26, NULL, 0, 0, 2, 'workflow.run', 'shop', '\x000000000000844fbbd58fb55ddd17ef', NULL, 0, 0, 1795003200000000, 2898053978, '\x7b2272756e223a2261736c656570222c22696e707574223a7b226974656d223a2261736c656570227d2c2267656e65726174696f6e223a302c226368696c64223a66616c73657d', 0, NULL, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_messages OVERRIDING SYSTEM VALUE VALUES (10, '\x01a1eef704727002b2becb384244829a', '', 'orders', 1, 1795014128370271, 0, NULL, 0, 0, 0, 'order', 'shop', '\x01a1eef704727002b2becb384244829a', NULL, 1, 0, 1795010528370271, 2138780592, '\x7b226974656d223a2264656c61796564227d', 0, NULL, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_messages OVERRIDING SYSTEM VALUE VALUES (9, '\x01a1eef704727001b0e03aae3cde4d43', '', 'orders', 1, 1795011458370271, 32, 1, 0, 0, 0, 'order', 'shop', '\x01a1eef704727001b0e03aae3cde4d43', NULL, 1, 0, 1795010528370271, 1405804599, '\x7b226974656d223a2268656c64227d', 0, NULL, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_messages OVERRIDING SYSTEM VALUE VALUES (8, '\x01a1eef704727000b63a017a36c0aea2', '', 'orders', 1, 1795010558370271, 33, NULL, 1, 0, 0, 'order', 'shop', '\x01a1eef704727000b63a017a36c0aea2', NULL, 1, 0, 1795010528370271, 3316819434, '\x7b226974656d223a226661696c696e67227d', 0, NULL, NULL, 0, 1795010528370271, 1795010528370271, 'ConnectionError', 'no answer');
INSERT INTO penstock.penstock_messages OVERRIDING SYSTEM VALUE VALUES (11, '\x01a1eef717fa700097c5a8b4f7fe8f06', '', 'orders', 1, 1795010533370271, 0, NULL, 0, 0, 0, 'order', 'shop', '\x01a1eef717fa700097c5a8b4f7fe8f06', NULL, 1, 0, 1795010533370271, 649516507, '\x7b226974656d223a2277616974696e67227d', 0, NULL, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_migrations VALUES ('0001_shop', '8b770bf45d3244545a67917971603a3603f4caa5476e24110c76462c0a452c57', 1795003200000000);
INSERT INTO penstock.penstock_minutes VALUES (1795003200000000, 1, 2);
INSERT INTO penstock.penstock_minutes VALUES (1795003200000000, 2, 2);
INSERT INTO penstock.penstock_minutes VALUES (1795003200000000, 3, 4);
INSERT INTO penstock.penstock_minutes VALUES (1795010400000000, 4, 1);
INSERT INTO penstock.penstock_minutes VALUES (1795010460000000, 3, 1);
INSERT INTO penstock.penstock_minutes VALUES (1795010520000000, 6, 1);
INSERT INTO penstock.penstock_numbers VALUES (1, 33, 1795010528370271);
INSERT INTO penstock.penstock_numbers VALUES (2, 34, 1795010533370271);
INSERT INTO penstock.penstock_objects VALUES ('Remembered', 'stripe.test', '\x7b2270616365223a7b22726174655f6d696e223a302e352c22726174655f6d6178223a35302e302c22706172616c6c656c223a33322c22647565223a313739353031303532382e353737303931372c22776169746564223a66616c73652c2272656675736573223a66616c73652c226365696c696e67223a7b2272617465223a332e3639363332393230353035393234332c226b6e6f776e223a6e756c6c2c227068617365223a22736561726368222c2270686173655f6e756d626572223a302c2270686173655f6174223a302e302c22616e7377657273223a36312c22747261696c223a7b2266756c6c5f6e756d626572223a302c2266756c6c5f6174223a313739353031303436312e302c226d6973736564223a302c226265666f7265223a5b5d2c2274616b656e223a302c226d696e757465223a5b5b313739353031303436392e3334363233362c31305d2c5b313739353031303437312e39383930342c31335d2c5b313739353031303437342e3530383938342c31365d2c5b313739353031303437362e3930313137312c31395d2c5b313739353031303437392e3136323036382c32325d2c5b313739353031303438312e3238393437362c32355d2c5b313739353031303438332e39313639362c32395d2c5b313739353031303438362e3330363738342c33335d2c5b313739353031303438382e3436333535352c33375d2c5b313739353031303439302e3834333636362c34325d2c5b313739353031303439322e3839393333322c34375d2c5b313739353031303439352e30323938322c35335d2c5b313739353031303439372e3137303237312c36305d2c5b313739353031303532382e3337303237312c36315d5d7d2c226372756973655f666f72223a31302c2263727569736564223a302c22706175736564223a302e302c22637265646974223a31322e302c22737472696b6573223a5b5d2c2266616c6c696e67223a66616c73652c22726973696e67223a66616c73652c22736574746c6564223a6e756c6c2c226d6973736564223a302c22646f756274223a302c22646f7562746564223a2d31303030302c226372657074223a66616c73652c2264656570223a302c22646565705f666f72223a342c226669726d223a302e302c2270726f62655f61736b6564223a302c2270726f62655f746f6f6b223a302e302c22636c756d706564223a66616c73652c22636c756d7065645f756e74696c223a302e302c2269736f6c61746564223a302c2269736f6c617465645f6d6f7374223a342c22756e7368616b656e223a6e756c6c2c227368616b656e5f66726f6d223a302c22746573745f666f72223a302c22746573745f726566757365645f6174223a302c22726566757365645f616e79776179223a302e302c2264656172223a7b2274696d6573223a302c226365696c696e67223a302e302c2268656c64223a6e756c6c2c226c6964223a6e756c6c2c2270726f62655f6166746572223a302e307d2c226f76657272756e223a66616c73652c226f76657272756e73223a302c226c6f6e675f636c6f736564223a66616c73652c22636c6f7365645f6e756d626572223a302c22636c6f7365645f6174223a6e756c6c7d2c22646f6f72223a7b22726f77223a302c22726f775f73696e6365223a302e302c227061757365223a302e302c22686f6c645f756e74696c223a302e302c22636c6f736564223a66616c73652c22646f776e223a66616c73652c226375745f6174223a2d312e302c226c6173745f6b6e6f636b223a302e307d2c22666c6967687473223a7b22756e6465725f776179223a7b7d2c226e756d626572223a36312c2268656c64223a302e302c226c6174656e6379223a302e31382c2262617365223a302e32303030303030303030303030303030342c22626c6f636b5f6c6174656e6379223a332e3430303030303030303030303030312c22626c6f636b5f636f756e74223a31382c22626c6f636b5f73696e6365223a313739353031303439312e3437393134342c227468726f756768707574223a312e373535343538313637383435393234322c226661696c696e67223a302e302c226261645f726f77223a302c226c696d6974223a6e756c6c2c22646f75627473223a302c22726566757365645f626573696465223a5b5d2c227065616b223a312c227065616b5f6265666f7265223a302c227065616b5f636f756e74223a36312c2270726f62655f696e223a3530302c2270726f62655f6576657279223a3530307d2c2271756f7461223a7b2277696e646f7773223a5b7b22706572696f64223a31302e302c22696e646578223a3137393530313035322c226669727374223a36302c2266756c6c5f6174223a302c22616772656564223a302c2270656e64696e67223a302c22636c6f7365645f696e223a2d312c22646f75627473223a307d2c7b22706572696f64223a33302e302c22696e646578223a35393833333638342c226669727374223a36302c2266756c6c5f6174223a302c22616772656564223a302c2270656e64696e67223a302c22636c6f7365645f696e223a2d312c22646f75627473223a307d2c7b22706572696f64223a36302e302c22696e646578223a32393931363834322c226669727374223a36302c2266756c6c5f6174223a302c22616772656564223a302c2270656e64696e67223a302c22636c6f7365645f696e223a2d312c22646f75627473223a307d2c7b22706572696f64223a3330302e302c22696e646578223a353938333336382c226669727374223a302c2266756c6c5f6174223a302c22616772656564223a302c2270656e64696e67223a302c22636c6f7365645f696e223a2d312c22646f75627473223a307d2c7b22706572696f64223a3630302e302c22696e646578223a323939313638342c226669727374223a302c2266756c6c5f6174223a302c22616772656564223a302c2270656e64696e67223a302c22636c6f7365645f696e223a2d312c22646f75627473223a307d2c7b22706572696f64223a3930302e302c22696e646578223a313939343435362c226669727374223a302c2266756c6c5f6174223a302c22616772656564223a302c2270656e64696e67223a302c22636c6f7365645f696e223a2d312c22646f75627473223a307d2c7b22706572696f64223a313830302e302c22696e646578223a3939373232382c226669727374223a302c2266756c6c5f6174223a302c22616772656564223a302c2270656e64696e67223a302c22636c6f7365645f696e223a2d312c22646f75627473223a307d2c7b22706572696f64223a333630302e302c22696e646578223a3439383631342c226669727374223a302c2266756c6c5f6174223a302c22616772656564223a302c2270656e64696e67223a302c22636c6f7365645f696e223a2d312c22646f75627473223a307d2c7b22706572696f64223a32313630302e302c22696e646578223a38333130322c226669727374223a302c2266756c6c5f6174223a302c22616772656564223a302c2270656e64696e67223a302c22636c6f7365645f696e223a2d312c22646f75627473223a307d2c7b22706572696f64223a38363430302e302c22696e646578223a32303737352c226669727374223a302c2266756c6c5f6174223a302c22616772656564223a302c2270656e64696e67223a302c22636c6f7365645f696e223a2d312c22646f75627473223a307d5d2c22626f756e64617279223a313739353031303533302e302c22706572696f64223a302e302c2273697a65223a302c22757365645f66726f6d223a302c2277696e646f775f696e646578223a2d312c2270726f62696e67223a66616c73652c22616e7377657273223a36312c2262726f6b656e223a307d2c227468726f74746c696e67223a7b2274657374223a7b22757375616c223a302e303030352c226d6f7265223a302e30352c22656e6f756768223a342e302c226c6561726e696e67223a302e302c226c65617374223a302e303030352c2273636f7265223a302e307d2c227375737065637473223a7b2272656675736564223a7b7d2c226775696c7479223a302e352c227368617265223a302e307d7d2c22756e617661696c61626c65223a7b22757375616c223a302e3031373730303830343835363131363434362c226d6f7265223a302e32352c22656e6f756768223a362e352c226c6561726e696e67223a302e3030322c226c65617374223a302e3030312c2273636f7265223a302e307d2c22776f726473223a226e6f20726573697374616e63653a20322e372061207365636f6e6420746f20332e332061207365636f6e64222c2273706f6b656e223a332e323736333239323035303539323431367d7d', 1, 1, NULL, NULL, 0, 1795010461000000, 1795010528370271);
INSERT INTO penstock.penstock_objects VALUES ('Till', 'main', '\x7b22636f756e74223a317d', 1, 1, NULL, NULL, 0, 1795010528370271, 1795010528370271);
INSERT INTO penstock.penstock_points OVERRIDING SYSTEM VALUE VALUES (1, 'platform_metrics', '2026-11-18 12:01:00', 2216117006951260630, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_points OVERRIDING SYSTEM VALUE VALUES (2, 'platform_metrics', '2026-11-18 12:01:00', 1347279327823887940, 3, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_points OVERRIDING SYSTEM VALUE VALUES (3, 'platform_metrics', '2026-11-18 12:01:00', 8363524199390497483, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_points OVERRIDING SYSTEM VALUE VALUES (4, 'platform_metrics', '2026-11-18 12:01:00', 79255803114662477, 3, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_points OVERRIDING SYSTEM VALUE VALUES (5, 'platform_metrics', '2026-11-18 12:01:00', 3003562126185057849, 2e-08, 0, 2, 19, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_points OVERRIDING SYSTEM VALUE VALUES (6, 'platform_metrics', '2026-11-18 14:01:00', 8363524199390497483, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_points OVERRIDING SYSTEM VALUE VALUES (7, 'platform_metrics', '2026-11-18 14:01:00', 79255803114662477, 2, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_points OVERRIDING SYSTEM VALUE VALUES (8, 'platform_metrics', '2026-11-18 14:01:00', 3003562126185057849, 2e-08, 0, 2, 21, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_points OVERRIDING SYSTEM VALUE VALUES (9, 'platform_metrics', '2026-11-18 14:01:01', 1347279327823887940, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_queues VALUES ('orders', 0, 3, 30, 600, 900, 3, 1, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 'order', 0);
INSERT INTO penstock.penstock_queues VALUES ('object.Remembered', 0, 6, 2, 64, 900, 3, 1, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 'object.told object.alarm', 1);
INSERT INTO penstock.penstock_queues VALUES ('object.Remembered-dlq', 0, 100, 30, 600, 900, 3, 1, 0, 1, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 'message.died', 0);
INSERT INTO penstock.penstock_queues VALUES ('object.Till', 0, 6, 2, 64, 900, 3, 1, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 'object.told object.alarm', 1);
INSERT INTO penstock.penstock_queues VALUES ('object.Till-dlq', 0, 100, 30, 600, 900, 3, 1, 0, 1, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 'message.died', 0);
INSERT INTO penstock.penstock_queues VALUES ('cron.sweep', 0, 0, 30, 600, 900, 3, 1, 0, 1, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 'cron.tick', 1);
INSERT INTO penstock.penstock_queues VALUES ('cron.sweep-dlq', 0, 100, 30, 600, 900, 3, 1, 0, 1, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 'message.died', 0);
INSERT INTO penstock.penstock_queues VALUES ('workflow.approval', 0, 3, 30, 600, 1800, 3, 1, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 'workflow.run', 1);
INSERT INTO penstock.penstock_queues VALUES ('workflow.approval-dlq', 0, 100, 30, 600, 900, 3, 1, 0, 1, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 'message.died', 0);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 2216117006951260630, 0, 1, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 2216117006951260630, 1, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 2216117006951260630, 2, 1, 2, 2, 2);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 79255803114662477, 0, 1, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 79255803114662477, 1, 1, 3, 3, 3);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 79255803114662477, 2, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 79255803114662477, 3, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 1347279327823887940, 0, 1, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 1347279327823887940, 1, 1, 3, 3, 3);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 1347279327823887940, 2, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 2216117006951260630, 0, 1, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 2216117006951260630, 1, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 2216117006951260630, 2, 1, 2, 2, 2);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 3003562126185057849, 0, 1, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 3003562126185057849, 1, 1, 2e-08, 2e-08, 2e-08);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 3003562126185057849, 2, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 3003562126185057849, 3, 1, 2, 2, 2);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 3003562126185057849, 4, 1, 19, 19, 19);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 8363524199390497483, 0, 1, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 8363524199390497483, 1, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 8363524199390497483, 2, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 12:00:00', 'platform_metrics', 8363524199390497483, 3, 1, 2, 2, 2);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 79255803114662477, 0, 2, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 79255803114662477, 1, 2, 5, 2, 3);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 79255803114662477, 2, 2, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 79255803114662477, 3, 2, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 3003562126185057849, 0, 2, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 3003562126185057849, 1, 2, 4e-08, 2e-08, 2e-08);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 3003562126185057849, 2, 2, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 3003562126185057849, 3, 2, 4, 2, 2);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 3003562126185057849, 4, 2, 40, 19, 21);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 8363524199390497483, 0, 2, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 8363524199390497483, 1, 2, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 8363524199390497483, 2, 2, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 8363524199390497483, 3, 2, 4, 2, 2);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 79255803114662477, 0, 1, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 79255803114662477, 1, 1, 2, 2, 2);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 79255803114662477, 2, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 79255803114662477, 3, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 3003562126185057849, 0, 1, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 3003562126185057849, 1, 1, 2e-08, 2e-08, 2e-08);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 3003562126185057849, 2, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 3003562126185057849, 3, 1, 2, 2, 2);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 3003562126185057849, 4, 1, 21, 21, 21);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 8363524199390497483, 0, 1, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 8363524199390497483, 1, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 8363524199390497483, 2, 1, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 8363524199390497483, 3, 1, 2, 2, 2);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 1347279327823887940, 0, 2, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 1347279327823887940, 1, 2, 4, 1, 3);
INSERT INTO penstock.penstock_rolled VALUES ('day', '2026-11-18 00:00:00', 'platform_metrics', 1347279327823887940, 2, 2, 0, 0, 0);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 1347279327823887940, 0, 1, NULL, NULL, NULL);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 1347279327823887940, 1, 1, 1, 1, 1);
INSERT INTO penstock.penstock_rolled VALUES ('hour', '2026-11-18 14:00:00', 'platform_metrics', 1347279327823887940, 2, 1, 0, 0, 0);
INSERT INTO penstock.penstock_runs VALUES ('\x000000000000844fbbd58fb55ddd17ef', 'approval', 'asleep', 'active', NULL, '\x7b226974656d223a2261736c656570227d', NULL, NULL, 0, 1, '\x000000000000844fbbd58fb55ddd17ef', NULL, NULL, 1795003200000000, NULL, NULL);
INSERT INTO penstock.penstock_runs VALUES ('\x0000000000008da5bc47c6b5df4e18e3', 'approval', 'waits', 'active', NULL, '\x7b226974656d223a227761697473227d', NULL, NULL, 0, 1, '\x0000000000008da5bc47c6b5df4e18e3', NULL, NULL, 1795003200000000, NULL, NULL);
INSERT INTO penstock.penstock_runs VALUES ('\x000000000000848683a07bb22af883bc', 'approval', 'done', 'complete', NULL, '\x7b226974656d223a22646f6e65227d', '\x22646f6e6520617070726f76656422', NULL, 0, 1, '\x000000000000848683a07bb22af883bc', NULL, NULL, 1795003200000000, 1795010401000000, 1797602401000000);
INSERT INTO penstock.penstock_samples VALUES ('state', 1795010460000000);
INSERT INTO penstock.penstock_samples VALUES ('cost', 1795010460000000);
INSERT INTO penstock.penstock_seen VALUES ('\x0000000000008570966577a0ca5b97ed', 'orders', 'order', 'shop', 1795003200000000, 1795003200000000);
INSERT INTO penstock.penstock_sizes VALUES ('2026-11-18', 1795010400000000, 9452903);
INSERT INTO penstock.penstock_sorts VALUES (79255803114662477, '2028-11-19', 'platform_metrics', 'penstock', 'shop', 'queue', 'workflow.approval', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_sorts VALUES (1347279327823887940, '2028-11-19', 'platform_metrics', 'penstock', 'shop', 'workflow', 'approval', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_sorts VALUES (2216117006951260630, '2028-11-19', 'platform_metrics', 'penstock', 'shop', 'failure', 'orders', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_sorts VALUES (3003562126185057849, '2028-11-19', 'platform_metrics', 'penstock', 'shop', 'cost', '2026-11', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_sorts VALUES (8363524199390497483, '2028-11-19', 'platform_metrics', 'penstock', 'shop', 'queue', 'orders', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO penstock.penstock_steps VALUES ('\x000000000000844fbbd58fb55ddd17ef', 0, 'ask', 'step', 'done', 1, 1795003200000000, 1795003200000000, NULL, '\x6e756c6c', NULL);
INSERT INTO penstock.penstock_steps VALUES ('\x0000000000008da5bc47c6b5df4e18e3', 0, 'ask', 'step', 'done', 1, 1795003200000000, 1795003200000000, NULL, '\x6e756c6c', NULL);
INSERT INTO penstock.penstock_steps VALUES ('\x000000000000848683a07bb22af883bc', 0, 'ask', 'step', 'done', 1, 1795003200000000, 1795003200000000, NULL, '\x6e756c6c', NULL);
INSERT INTO penstock.penstock_steps VALUES ('\x0000000000008da5bc47c6b5df4e18e3', 1, 'verdict', 'signal', 'waiting', 0, 1795003200000000, NULL, 1795089600000000, NULL, NULL);
INSERT INTO penstock.penstock_steps VALUES ('\x000000000000848683a07bb22af883bc', 1, 'verdict', 'signal', 'done', 0, 1795003200000000, 1795003201000000, NULL, '\x7b226f6b223a747275652c226279223a22227d', NULL);
INSERT INTO penstock.penstock_steps VALUES ('\x000000000000848683a07bb22af883bc', 2, 'sleep-1', 'sleep', 'done', 0, 1795003201000000, 1795010401000000, NULL, NULL, NULL);
INSERT INTO penstock.penstock_steps VALUES ('\x000000000000848683a07bb22af883bc', 3, 'answer', 'step', 'done', 1, 1795010401000000, 1795010401000000, NULL, '\x22646f6e6520617070726f76656422', NULL);
INSERT INTO penstock.penstock_steps VALUES ('\x000000000000844fbbd58fb55ddd17ef', 1, 'verdict', 'signal', 'done', 0, 1795003200000000, 1795010497370271, NULL, '\x7b226f6b223a66616c73652c226279223a22227d', NULL);
INSERT INTO penstock.penstock_steps VALUES ('\x000000000000844fbbd58fb55ddd17ef', 2, 'sleep-1', 'sleep', 'waiting', 0, 1795010497370271, NULL, 1795017697370271, NULL, NULL);
INSERT INTO penstock.penstock_tallies VALUES ('2026-11-18', 'platform_metrics', 9, 0, 0, 0, 706);
INSERT INTO penstock.penstock_timers OVERRIDING SYSTEM VALUE VALUES (1, 'cron', 'sweep', 1795060800000000, 1795003200000000, 0, 'cron.sweep', 'cron.tick', '{"expression":"0 4 * * *","zone":"UTC","jitter_seconds":0,"catch_up":"once","overlap":"skip","catch_up_max":100}', 0);
INSERT INTO penstock.penstock_timers OVERRIDING SYSTEM VALUE VALUES (2, 'alarm', 'Till/main', 1795014128370271, 1795014128370271, 0, 'object.Till', 'object.alarm', NULL, 0);
INSERT INTO penstock.penstock_usage VALUES ('2026-11', 'orders:ship', 'insert into shipped (item) values (:item)', 2, 0, 2, 0, 0, 762);
INSERT INTO penstock.penstock_usage VALUES ('2026-11', 'queue:orders', 'penstock:queue_operations', 12, 0, 0, 0, 0, 0);
INSERT INTO penstock.penstock_usage VALUES ('2026-11', 'object.Remembered', 'penstock:object_requests', 3, 0, 3, 0, 0, 0);
INSERT INTO penstock.penstock_usage VALUES ('2026-11', 'queue:workflow.approval', 'penstock:queue_operations', 10, 0, 0, 0, 0, 0);
INSERT INTO penstock.penstock_workers OVERRIDING SYSTEM VALUE VALUES (1, 'vm', 12308, 1795003200000000, 0);
INSERT INTO penstock.penstock_workers OVERRIDING SYSTEM VALUE VALUES (2, 'vm', 12308, 1795003200000000, 0);
INSERT INTO public.shipped VALUES ('shipped');
INSERT INTO public.shipped VALUES ('unique');
SELECT pg_catalog.setval('penstock.penstock_dead_seq_seq', 2, true);
SELECT pg_catalog.setval('penstock.penstock_history_seq_seq', 11, true);
SELECT pg_catalog.setval('penstock.penstock_labels_label_seq', 6, true);
SELECT pg_catalog.setval('penstock.penstock_messages_seq_seq', 11, true);
SELECT pg_catalog.setval('penstock.penstock_points_seq_seq', 9, true);
SELECT pg_catalog.setval('penstock.penstock_signals_seq_seq', 2, true);
SELECT pg_catalog.setval('penstock.penstock_timers_seq_seq', 2, true);
SELECT pg_catalog.setval('penstock.penstock_tokens', 34, true);
SELECT pg_catalog.setval('penstock.penstock_workers_id_seq', 2, true);
ALTER TABLE ONLY penstock.penstock_calls
    ADD CONSTRAINT penstock_calls_pkey PRIMARY KEY (id);
ALTER TABLE ONLY penstock.penstock_classes
    ADD CONSTRAINT penstock_classes_pkey PRIMARY KEY (class);
ALTER TABLE ONLY penstock.penstock_counters
    ADD CONSTRAINT penstock_counters_pkey PRIMARY KEY (queue, worker);
ALTER TABLE ONLY penstock.penstock_counts
    ADD CONSTRAINT penstock_counts_pkey PRIMARY KEY (name);
ALTER TABLE ONLY penstock.penstock_dead
    ADD CONSTRAINT penstock_dead_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY penstock.penstock_facts
    ADD CONSTRAINT penstock_facts_pkey PRIMARY KEY (name);
ALTER TABLE ONLY penstock.penstock_handlers
    ADD CONSTRAINT penstock_handlers_pkey PRIMARY KEY (queue, type, handler, worker);
ALTER TABLE ONLY penstock.penstock_history
    ADD CONSTRAINT penstock_history_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY penstock.penstock_items
    ADD CONSTRAINT penstock_items_pkey PRIMARY KEY (controller, item);
ALTER TABLE ONLY penstock.penstock_labels
    ADD CONSTRAINT penstock_labels_kind_service_queue_name_source_attempt_stat_key UNIQUE (kind, service, queue, name, source, attempt, status);
ALTER TABLE ONLY penstock.penstock_labels
    ADD CONSTRAINT penstock_labels_pkey PRIMARY KEY (label);
ALTER TABLE ONLY penstock.penstock_messages
    ADD CONSTRAINT penstock_messages_id_queue_handler_key UNIQUE (id, queue, handler);
ALTER TABLE ONLY penstock.penstock_messages
    ADD CONSTRAINT penstock_messages_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY penstock.penstock_migrations
    ADD CONSTRAINT penstock_migrations_pkey PRIMARY KEY (name);
ALTER TABLE ONLY penstock.penstock_minutes
    ADD CONSTRAINT penstock_minutes_pkey PRIMARY KEY (minute, label);
ALTER TABLE ONLY penstock.penstock_numbers
    ADD CONSTRAINT penstock_numbers_pkey PRIMARY KEY (worker);
ALTER TABLE ONLY penstock.penstock_objects
    ADD CONSTRAINT penstock_objects_pkey PRIMARY KEY (class, name);
ALTER TABLE ONLY penstock.penstock_once
    ADD CONSTRAINT penstock_once_pkey PRIMARY KEY (scope, key);
ALTER TABLE ONLY penstock.penstock_points
    ADD CONSTRAINT penstock_points_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY penstock.penstock_queues
    ADD CONSTRAINT penstock_queues_pkey PRIMARY KEY (name);
ALTER TABLE ONLY penstock.penstock_rolled
    ADD CONSTRAINT penstock_rolled_pkey PRIMARY KEY (span, at, dataset, sort, place);
ALTER TABLE ONLY penstock.penstock_runs
    ADD CONSTRAINT penstock_runs_pkey PRIMARY KEY (key);
ALTER TABLE ONLY penstock.penstock_samples
    ADD CONSTRAINT penstock_samples_pkey PRIMARY KEY (kind);
ALTER TABLE ONLY penstock.penstock_seen
    ADD CONSTRAINT penstock_seen_pkey PRIMARY KEY (id, queue);
ALTER TABLE ONLY penstock.penstock_signals
    ADD CONSTRAINT penstock_signals_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY penstock.penstock_sizes
    ADD CONSTRAINT penstock_sizes_pkey PRIMARY KEY (day);
ALTER TABLE ONLY penstock.penstock_sorts
    ADD CONSTRAINT penstock_sorts_pkey PRIMARY KEY (sort);
ALTER TABLE ONLY penstock.penstock_spending
    ADD CONSTRAINT penstock_spending_pkey PRIMARY KEY (service, scope, period);
ALTER TABLE ONLY penstock.penstock_steps
    ADD CONSTRAINT penstock_steps_pkey PRIMARY KEY (run, "position");
ALTER TABLE ONLY penstock.penstock_tallies
    ADD CONSTRAINT penstock_tallies_pkey PRIMARY KEY (day, dataset);
ALTER TABLE ONLY penstock.penstock_ticks
    ADD CONSTRAINT penstock_ticks_pkey PRIMARY KEY (schedule, due);
ALTER TABLE ONLY penstock.penstock_timers
    ADD CONSTRAINT penstock_timers_kind_name_key UNIQUE (kind, name);
ALTER TABLE ONLY penstock.penstock_timers
    ADD CONSTRAINT penstock_timers_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY penstock.penstock_usage
    ADD CONSTRAINT penstock_usage_pkey PRIMARY KEY (month, task, statement);
ALTER TABLE ONLY penstock.penstock_workers
    ADD CONSTRAINT penstock_workers_pkey PRIMARY KEY (id);
CREATE INDEX penstock_calls_created ON penstock.penstock_calls USING btree (created_at);
CREATE INDEX penstock_calls_reserved ON penstock.penstock_calls USING btree (service) WHERE (state = 'reserved'::text);
CREATE INDEX penstock_calls_runs ON penstock.penstock_calls USING btree (run) WHERE (run IS NOT NULL);
CREATE INDEX penstock_dead_ids ON penstock.penstock_dead USING btree (id);
CREATE INDEX penstock_dead_resolved ON penstock.penstock_dead USING btree (resolved_at) WHERE (resolution IS NOT NULL);
CREATE INDEX penstock_dead_unresolved ON penstock.penstock_dead USING btree (queue, failed_at) WHERE (resolution IS NULL);
CREATE INDEX penstock_history_chains ON penstock.penstock_history USING btree (correlation_id);
CREATE INDEX penstock_history_ids ON penstock.penstock_history USING btree (id);
CREATE INDEX penstock_history_noted ON penstock.penstock_history USING btree (noted_at);
CREATE INDEX penstock_messages_expiring ON penstock.penstock_messages USING btree (expires) WHERE ((expires IS NOT NULL) AND (worker IS NULL));
CREATE INDEX penstock_messages_leased ON penstock.penstock_messages USING btree (due) WHERE (worker IS NOT NULL);
CREATE INDEX penstock_messages_waiting ON penstock.penstock_messages USING btree (queue, priority, due) WHERE (worker IS NULL);
CREATE INDEX penstock_objects_owned ON penstock.penstock_objects USING btree (owner) WHERE (owner IS NOT NULL);
CREATE INDEX penstock_once_saved ON penstock.penstock_once USING btree (saved_at);
CREATE INDEX penstock_points_times ON penstock.penstock_points USING btree (dataset, at);
CREATE INDEX penstock_queues_held ON penstock.penstock_queues USING btree (name) WHERE ((paused = 1) OR (rate IS NOT NULL) OR (rate_tuned IS NOT NULL) OR (parallel_tuned IS NOT NULL));
CREATE INDEX penstock_runs_children ON penstock.penstock_runs USING btree (parent) WHERE (parent IS NOT NULL);
CREATE INDEX penstock_runs_forgotten ON penstock.penstock_runs USING btree (forget_at) WHERE (forget_at IS NOT NULL);
CREATE INDEX penstock_seen_at ON penstock.penstock_seen USING btree (seen_at);
CREATE INDEX penstock_signals_run ON penstock.penstock_signals USING btree (run, name);
CREATE INDEX penstock_sorts_ends ON penstock.penstock_sorts USING btree (until);
CREATE INDEX penstock_spending_began ON penstock.penstock_spending USING btree (began_at);
CREATE INDEX penstock_ticks_fired ON penstock.penstock_ticks USING btree (fired_at);
CREATE INDEX penstock_timers_due ON penstock.penstock_timers USING btree (due) WHERE (paused = 0);
