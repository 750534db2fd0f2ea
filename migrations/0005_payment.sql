-- Charges and refunds that somebody else makes for us.
create table payment (
    id uuid primary key,
    order_id uuid not null references "order" (id),
    account_id uuid not null references account (id),
    made_by bytea not null,
    key text collate "C" not null,
    provider_key text not null,
    status text not null,
    amount bigint not null,
    currency text not null,
    payment_method text not null,
    charge_id text,
    decline_code text,
    -- The order could take no money when it arrived: it goes back by itself.
    misdirected boolean not null default false,
    created_at timestamptz not null,
    settled_at timestamptz,
    constraint payment_made_by_key unique (made_by, key),
    constraint payment_provider_key_key unique (provider_key),
    constraint payment_status check
        (status in ('processing', 'unknown', 'succeeded', 'declined', 'cancelled')),
    constraint payment_amount check (amount > 0)
);
create unique index payment_live on payment (order_id)
    where status in ('processing', 'unknown', 'succeeded') and not misdirected;
create index payment_order_id on payment (order_id);
create index payment_charge_id on payment (charge_id);

alter table "order" add constraint order_live_payment_id_fkey
    foreign key (live_payment_id) references payment (id) deferrable initially deferred;

create table refund (
    id uuid primary key,
    payment_id uuid not null references payment (id),
    account_id uuid not null references account (id),
    made_by bytea not null,
    key text collate "C" not null,
    provider_key text not null,
    status text not null,
    amount bigint not null,
    currency text not null,
    reason text,
    restock boolean not null,
    -- The provider's own id, also of refunds that were made there without us.
    provider_refund_id text,
    created_at timestamptz not null,
    settled_at timestamptz,
    constraint refund_made_by_key unique (made_by, key),
    constraint refund_provider_key_key unique (provider_key),
    constraint refund_provider_refund_id_key unique (provider_refund_id),
    constraint refund_status check (status in ('processing', 'unknown', 'succeeded', 'failed')),
    constraint refund_amount check (amount > 0)
);
create index refund_payment_id on refund (payment_id);

-- Refunds of a payment, open ones included, never exceed it.
create function refund_within_payment() returns trigger language plpgsql as $$
declare
    captured bigint;
    refunded bigint;
begin
    select amount into captured from payment where id = new.payment_id for update;
    select coalesce(sum(amount), 0) into refunded from refund
    where payment_id = new.payment_id and status <> 'failed';
    if refunded > captured then
        raise exception 'refunds of % exceed payment %', refunded, new.payment_id
            using errcode = 'check_violation', constraint = 'refund_within_payment';
    end if;
    return null;
end
$$;
create trigger refund_within_payment after insert or update of amount, status, payment_id on refund
    for each row execute function refund_within_payment();
