-- What the half-measures write, beside the product's own tables in the lab's own database.
create table lab_order (
    id bigint generated always as identity primary key,
    run text not null,
    customer integer not null,
    cart integer not null,
    charge_id text not null,
    -- Only the guard that relies on it fills this in.
    unique_key text,
    created_at timestamptz not null default clock_timestamp(),
    constraint lab_order_unique_key unique (run, unique_key)
);
create index lab_order_run on lab_order (run);

create table lab_mail (
    id bigint generated always as identity primary key,
    run text not null,
    customer integer not null,
    order_id bigint not null references lab_order (id)
);
create index lab_mail_run on lab_mail (run);

create table lookup_key (
    run text not null,
    key text not null,
    answer text not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (run, key)
);

create table processing_key (
    run text not null,
    key text not null,
    state text not null default 'processing',
    answer text,
    created_at timestamptz not null default clock_timestamp(),
    primary key (run, key)
);
