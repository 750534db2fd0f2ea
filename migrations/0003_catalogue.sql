-- What the shop sells, and why there is as much of it as there is.
create table product (
    id integer generated always as identity primary key,
    sku text collate "C" not null,
    name text not null,
    description text not null,
    price bigint not null,
    currency text not null,
    -- What can still be sold: initial_stock plus the sum of all movements.
    initial_stock bigint not null,
    stock bigint not null,
    constraint product_sku_key unique (sku),
    constraint product_price check (price between 1 and 100000000000),
    constraint product_stock check (stock >= 0)
) with (fillfactor = 70);

create table stock_movement (
    id uuid primary key,
    product_id integer not null references product (id),
    delta bigint not null,
    kind text not null,
    reason text,
    stock_after bigint not null,
    -- The order whose goods moved; none for a merchant's correction.
    order_id uuid,
    created_at timestamptz not null default clock_timestamp(),
    made_by bytea,
    key text collate "C",
    constraint stock_movement_kind check (kind in ('sold', 'returned', 'corrected')),
    constraint stock_movement_order check ((kind = 'corrected') = (order_id is null)),
    -- Goods leave for an order once and come back from it once, by whichever way.
    constraint stock_movement_once unique (order_id, kind, product_id),
    constraint stock_movement_made_by_key unique (made_by, key),
    constraint stock_movement_made_by_pair check
        ((made_by is null) = (key is null) and (kind = 'corrected') = (made_by is not null))
);
create index stock_movement_product_id on stock_movement (product_id, created_at);
