-- The textbook transaction: seven statements, seven round trips. Ids grow with time, as ours do, and
-- what it writes down is as long as what we write: the order's e-mail, the reply, where the order is.
\set n :n + 1
\set product random(1, 500)
begin;
insert into idempotency_record (scope, key, fingerprint, marks, operation, state, subject, lease_until, recover_at) values ('\x00000000000000000000000000000001', 'bench-' || :run || '-' || :client_id || '-' || :n, sha256('bench'), '', 'bench', 'processing', '00000000-0000-0000-0000-000000000000', clock_timestamp() + interval '30 s', clock_timestamp() + interval '30 s') on conflict do nothing;
update product set stock = stock - 1 where id = :first_product + :product and stock >= 1;
insert into "order" (id, account_id, made_by, key, status, total, currency, email, created_at, reserved_until) values ((lpad(to_hex(:run::int), 8, '0') || lpad(to_hex(:n::int), 8, '0') || lpad(to_hex(:client_id::int), 16, '0'))::uuid, :account, '\x00000000000000000000000000000001', 'bench-' || :run || '-' || :client_id || '-' || :n, 'pending', 2400, 'USD', 'shopper@payonce.test', clock_timestamp(), clock_timestamp() + interval '15 min');
insert into order_line (order_id, position, product_id, sku, name, quantity, unit_price, line_total) values ((lpad(to_hex(:run::int), 8, '0') || lpad(to_hex(:n::int), 8, '0') || lpad(to_hex(:client_id::int), 16, '0'))::uuid, 1, :first_product + :product, 'bench', 'Bench product', 1, 2400, 2400);
update idempotency_record set state = 'completed', status = 201, headers = :headers, body = :body, resource = :resource, finished_at = clock_timestamp(), expires_at = clock_timestamp() + interval '24 h', lease_until = null, recover_at = null where scope = '\x00000000000000000000000000000001' and key = 'bench-' || :run || '-' || :client_id || '-' || :n;
commit;
