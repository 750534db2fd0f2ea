-- Double entry: every movement of money is a set of postings that sums to zero.
create table ledger_posting (
    id bigint generated always as identity primary key,
    transaction_id uuid not null,
    account text not null,
    -- Minor units; a debit is positive.
    amount bigint not null,
    currency text not null,
    payment_id uuid not null references payment (id),
    refund_id uuid references refund (id),
    created_at timestamptz not null default clock_timestamp(),
    constraint ledger_posting_amount check (amount <> 0),
    -- A payment is captured once, a refund paid out once.
    constraint ledger_posting_once unique nulls not distinct (payment_id, refund_id, account)
);
create index ledger_posting_transaction_id on ledger_posting (transaction_id);

create function ledger_balanced() returns trigger language plpgsql as $$
begin
    if exists (
        select 1 from ledger_posting where transaction_id = new.transaction_id
        group by currency having sum(amount) <> 0
    ) then
        raise exception 'ledger transaction % does not balance', new.transaction_id
            using errcode = 'check_violation', constraint = 'ledger_balanced';
    end if;
    return null;
end
$$;
create constraint trigger ledger_balanced after insert on ledger_posting
    deferrable initially deferred for each row execute function ledger_balanced();

create function ledger_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'the ledger is only ever added to' using errcode = 'check_violation',
        constraint = 'ledger_append_only';
end
$$;
create trigger ledger_append_only before update or delete on ledger_posting
    for each row execute function ledger_append_only();
