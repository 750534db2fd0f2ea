-- The provider's own tables. They know nothing of the shop but the reference it sent.
create schema if not exists provider;

create table if not exists provider.charge (
    provider_key   text primary key,
    id             text not null unique,
    -- A key that was cancelled before any charge came has none of these four.
    reference      text,
    amount         bigint check (amount > 0),
    currency       text,
    payment_method text,
    status         text not null check (status in ('pending', 'succeeded', 'declined', 'cancelled')),
    decline_code   text,
    created_at     timestamptz not null default clock_timestamp(),
    constraint charge_is_complete check (
        status = 'cancelled'
        or (reference is not null and amount is not null
            and currency is not null and payment_method is not null)
    )
);
create index if not exists charge_reference on provider.charge (reference);
create index if not exists charge_pending on provider.charge (created_at) where status = 'pending';

create table if not exists provider.refund (
    provider_key text primary key,
    id           text not null unique,
    -- What the caller named, and the charge it turned out to be.
    charge       text,
    charge_id    text references provider.charge (id),
    reference    text,
    amount       bigint check (amount > 0),
    currency     text,
    status       text not null check (status in ('pending', 'succeeded', 'failed')),
    failure_code text,
    created_at   timestamptz not null default clock_timestamp()
);
create index if not exists refund_charge on provider.refund (charge_id);
create index if not exists refund_reference on provider.refund (reference);
create index if not exists refund_pending on provider.refund (created_at) where status = 'pending';

create table if not exists provider.event (
    id          text primary key,
    body        bytea not null,
    -- How often it is to arrive: sometimes twice, on purpose.
    copies      int not null,
    attempts    int not null default 0,
    due_at      timestamptz not null,
    created_at  timestamptz not null default clock_timestamp(),
    state       text not null default 'waiting' check (state in ('waiting', 'delivered', 'dead'))
);
create index if not exists event_due on provider.event (due_at) where state = 'waiting';

create or replace view provider.shown_charge as
    select c.id, c.provider_key, c.reference, c.payment_method, c.status, c.decline_code, c.created_at,
        case when c.amount is not null
            then jsonb_build_object('amount', c.amount, 'currency', c.currency)
        end as amount,
        case when c.amount is not null
            then jsonb_build_object('amount', coalesce(r.refunded, 0), 'currency', c.currency)
        end as refunded
    from provider.charge c
    left join lateral (
        select sum(r.amount) as refunded
        from provider.refund r
        where r.charge_id = c.id and r.status = 'succeeded'
    ) r on true;

create or replace view provider.shown_refund as
    select r.id, r.provider_key, r.charge, r.charge_id, r.reference, r.status, r.failure_code,
        r.created_at,
        case when r.amount is not null
            then jsonb_build_object('amount', r.amount, 'currency', r.currency)
        end as amount
    from provider.refund r;
