-- What left a business transaction and must be delivered: mails, events, their deliveries.
create table mail (
    id uuid primary key,
    account_id uuid not null references account (id),
    order_id uuid not null references "order" (id),
    kind text not null,
    -- The order of a receipt, the refund of a refund notice.
    subject_id uuid not null,
    message_id text not null,
    recipient text not null,
    subject text not null,
    body text not null,
    state text not null default 'queued',
    attempts integer not null default 0,
    next_attempt_at timestamptz not null default clock_timestamp(),
    lease_until timestamptz,
    last_error text,
    created_at timestamptz not null default clock_timestamp(),
    sent_at timestamptz,
    constraint mail_kind check (kind in ('receipt', 'refund_notice')),
    constraint mail_state check (state in ('queued', 'sent', 'dead')),
    constraint mail_once unique (kind, subject_id),
    constraint mail_message_id_key unique (message_id)
);
create index mail_due on mail (next_attempt_at) where state = 'queued';
-- For the sweep and the counts: what is over with.
create index mail_dead on mail (created_at) where state = 'dead';
create index mail_old on mail (created_at) where state in ('sent', 'dead') and body <> '';
create index mail_account_id on mail (account_id);

-- An event of ours, with the very bytes that every attempt sends.
create table event (
    id uuid primary key,
    kind text not null,
    subject_id uuid not null,
    order_id uuid not null references "order" (id),
    body bytea not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint event_once unique (kind, subject_id)
);

create table webhook_endpoint (
    id uuid primary key,
    account_id uuid not null references account (id),
    made_by bytea not null,
    key text collate "C" not null,
    url text not null,
    events text[] not null,
    -- The signing secret, encrypted under the server's secret.
    sealed_secret bytea not null,
    created_at timestamptz not null,
    deleted_at timestamptz,
    constraint webhook_endpoint_made_by_key unique (made_by, key)
);
create index webhook_endpoint_account_id on webhook_endpoint (account_id);

create table delivery (
    event_id uuid not null references event (id),
    endpoint_id uuid not null references webhook_endpoint (id),
    state text not null default 'queued',
    attempts integer not null default 0,
    next_attempt_at timestamptz not null default clock_timestamp(),
    lease_until timestamptz,
    last_error text,
    created_at timestamptz not null default clock_timestamp(),
    delivered_at timestamptz,
    primary key (event_id, endpoint_id),
    constraint delivery_state check (state in ('queued', 'delivered', 'dead'))
);
create index delivery_due on delivery (next_attempt_at) where state = 'queued';
-- For the sweep and the counts: what is over with.
create index delivery_dead on delivery (created_at) where state = 'dead';
create index delivery_old on delivery (created_at) where state in ('delivered', 'dead');
create index delivery_lease_until on delivery (lease_until)
    where state = 'queued' and lease_until is not null;

-- Events of the provider that were taken in: an id and its effect commit together.
create table provider_event (
    id text primary key,
    kind text not null,
    provider_key text,
    -- What was made of it: applied, repeated, ignored, or why it is an anomaly.
    outcome text not null,
    body bytea not null,
    received_at timestamptz not null default clock_timestamp()
);
create index provider_event_received_at on provider_event (received_at);
create index provider_event_provider_key on provider_event (provider_key);
