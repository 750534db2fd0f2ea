-- Carts, and the orders that consume them.
create table cart (
    id uuid primary key,
    account_id uuid not null references account (id),
    created_at timestamptz not null,
    updated_at timestamptz not null
);
create index cart_account_id on cart (account_id);

create table cart_line (
    cart_id uuid not null references cart (id) on delete cascade,
    sku text collate "C" not null,
    quantity integer not null,
    added_at timestamptz not null,
    primary key (cart_id, sku),
    constraint cart_line_quantity check (quantity between 1 and 99)
);

create domain order_status as text check
    (value in ('pending', 'paid', 'partially_refunded', 'refunded', 'cancelled', 'expired'));
create domain order_total as bigint check (value > 0);
create domain line_quantity as integer check (value between 1 and 99);

create table "order" (
    id uuid primary key,
    -- Whose it is now, and whose it was when it was made.
    account_id uuid not null references account (id),
    made_by bytea not null,
    key text collate "C" not null,
    cart_id uuid,
    status order_status not null,
    total order_total not null,
    currency text not null,
    email text,
    note text,
    created_at timestamptz not null,
    reserved_until timestamptz not null,
    -- The payment that is processing, unknown or succeeded.
    live_payment_id uuid,
    constraint order_made_by_key unique (made_by, key),
    constraint order_cart_id_key unique (cart_id)
) with (fillfactor = 85);
create index order_account_id on "order" (account_id, id desc);
create index order_reserved_until on "order" (reserved_until) where status = 'pending';

create table order_line (
    order_id uuid not null references "order" (id),
    position integer not null,
    product_id integer not null references product (id),
    sku text collate "C" not null,
    name text not null,
    quantity line_quantity not null,
    unit_price bigint not null,
    line_total bigint not null,
    -- Goods leave with their line and come back once, by whichever way.
    returned_at timestamptz,
    -- One line a product.
    primary key (order_id, product_id),
    constraint order_line_total check (line_total = quantity * unit_price)
);

-- All that moved stock, and why.
create view stock_change as
    select product_id, -quantity::bigint as delta, 'sold' as kind, order_id from order_line
    union all
    select product_id, quantity, 'returned', order_id from order_line where returned_at is not null
    union all
    select product_id, delta, 'corrected', null from stock_movement;
