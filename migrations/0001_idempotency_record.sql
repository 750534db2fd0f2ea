-- Rules about one column are domains: Postgres keeps their checks ready, while it reads a table's
-- checks anew for every statement that writes to it.
create domain idempotency_scope as bytea check (octet_length(value) between 1 and 32);
create domain idempotency_key as text collate "C" check (octet_length(value) between 1 and 255);
create domain request_fingerprint as bytea check (octet_length(value) = 32);
create domain record_state as text check (value in ('processing', 'unknown', 'completed', 'failed'));
-- A statement that finds its effects incomplete writes status 0 and is undone by this.
create domain reply_status as smallint
    constraint idempotency_record_effects_complete check (value between 200 and 499);

-- One row per idempotency key: what was asked, how far it came, the reply for ever.
create table idempotency_record (
    scope idempotency_scope not null,
    key idempotency_key not null,
    -- SHA-256 of the request, and marks that name differences without values.
    fingerprint request_fingerprint not null,
    marks bytea not null,
    -- The route, for people who look.
    operation text not null,
    state record_state not null,
    -- The holder's number: whoever takes over has the next one.
    fence bigint not null default 1,
    -- Executions, not replays.
    attempts integer not null default 1,
    -- What an unfinished operation is about (its payment, its refund).
    subject uuid,
    -- What the operation made, as a path.
    resource text,
    created_at timestamptz not null default clock_timestamp(),
    -- Unfinished rows only: until when the holder may act, when to look after it next.
    lease_until timestamptz,
    recover_at timestamptz,
    -- Finished rows only.
    finished_at timestamptz,
    expires_at timestamptz,
    status reply_status,
    headers bytea,
    body bytea,
    constraint idempotency_record_pkey primary key (scope, key),
    constraint idempotency_record_finished check (
        case when state in ('completed', 'failed')
            then num_nulls(status, finished_at, expires_at, headers, body) = 0
            else num_nulls(lease_until, subject) = 0 and status is null
        end
    )
) with (
    -- Rows come and go by the day: vacuum little and often, so that their room is used again.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 1
);

create index idempotency_record_expires_at on idempotency_record (expires_at)
    where state in ('completed', 'failed');
create index idempotency_record_recover_at on idempotency_record (recover_at)
    where state in ('processing', 'unknown');
-- To count what one account has under way.
create index idempotency_record_unfinished on idempotency_record (scope)
    where state in ('processing', 'unknown');
