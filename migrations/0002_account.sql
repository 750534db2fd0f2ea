-- Who acts: guests, shoppers, merchants, and their sessions.
create table account (
    id uuid primary key,
    role text not null,
    -- Guests have neither e-mail nor password.
    email text,
    password_hash text,
    name text,
    created_at timestamptz not null,
    -- The scope and key that created it (guests and demo accounts: none).
    made_by bytea,
    key text collate "C",
    constraint account_role check (role in ('guest', 'shopper', 'merchant')),
    constraint account_email check ((role = 'guest') = (email is null) and email = lower(email)),
    constraint account_email_key unique (email),
    constraint account_made_by_key unique (made_by, key),
    constraint account_made_by_pair check ((made_by is null) = (key is null))
);
-- For the sweep, which looks through guests oldest first.
create index account_guest on account (created_at, id) where role = 'guest';

-- Bearer tokens and page cookies; only hashes are stored.
create table session (
    token_hash bytea primary key,
    account_id uuid not null references account (id) on delete cascade,
    kind text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    constraint session_kind check (kind in ('bearer', 'cookie'))
);
create index session_account_id on session (account_id);
create index session_expires_at on session (expires_at);
