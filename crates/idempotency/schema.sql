-- One row per idempotency key: what was asked, how far it came, the reply for ever.
create table idempotency_record (
    scope bytea not null,
    key text collate "C" not null,
    -- SHA-256 of the request, and marks that name differences without values.
    fingerprint bytea not null,
    marks bytea not null,
    -- The route, for people who look.
    operation text not null,
    state text not null,
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
    status smallint,
    headers bytea,
    body bytea,
    constraint idempotency_record_pkey primary key (scope, key),
    constraint idempotency_record_scope check (octet_length(scope) between 1 and 32),
    constraint idempotency_record_key check (octet_length(key) between 1 and 255),
    constraint idempotency_record_fingerprint check (octet_length(fingerprint) = 32),
    constraint idempotency_record_state check (
        case state
            when 'processing' then lease_until is not null and subject is not null and status is null
            when 'unknown' then lease_until is not null and subject is not null and status is null
            when 'completed' then status is not null and finished_at is not null
                and expires_at is not null and headers is not null and body is not null
            when 'failed' then status is not null and finished_at is not null
                and expires_at is not null and headers is not null and body is not null
            else false
        end
    ),
    -- A statement that finds its effects incomplete writes status 0 and is undone by this.
    constraint idempotency_record_effects_complete check (status between 200 and 499)
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
