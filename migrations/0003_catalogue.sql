-- What the shop sells, and why there is as much of it as there is.
create domain product_price as bigint check (value between 1 and 100000000000);
create domain product_stock as bigint check (value >= 0);

create table product (
    id integer generated always as identity primary key,
    sku text collate "C" not null,
    name text not null,
    description text not null,
    price product_price not null,
    currency text not null,
    -- What can still be sold: initial_stock plus the sum of all stock_change.
    initial_stock bigint not null,
    stock product_stock not null,
    constraint product_sku_key unique (sku)
) with (fillfactor = 70);

-- What a merchant has corrected. What orders took and gave back stands in their lines.
create table stock_movement (
    id uuid primary key,
    product_id integer not null references product (id),
    delta bigint not null,
    reason text not null,
    stock_after bigint not null,
    created_at timestamptz not null,
    made_by bytea not null,
    key text collate "C" not null,
    constraint stock_movement_delta check (delta <> 0),
    constraint stock_movement_made_by_key unique (made_by, key)
);
create index stock_movement_product_id on stock_movement (product_id, created_at);
