-- The sweep inside the database, for those who run pg_cron and set --sweep-cron to a rare hour.
-- The same batches as `payonce sweep`: short, in order, skipping what others hold, each committed.
create extension if not exists pg_cron;

create or replace procedure sweep_idempotency_records(batches_max integer default 2000)
language plpgsql as $$
declare
    swept bigint;
begin
    for batch in 1..batches_max loop
        delete from idempotency_record r using (
            select scope, key from idempotency_record
            where state in ('completed', 'failed') and expires_at <= clock_timestamp()
            order by expires_at
            limit 1000
            for update skip locked
        ) as gone
        where r.scope = gone.scope and r.key = gone.key;
        get diagnostics swept = row_count;
        commit;
        exit when swept < 1000;
        perform pg_sleep(0.01);
    end loop;
end
$$;

select cron.schedule('sweep idempotency records', '0 * * * *', 'call sweep_idempotency_records()');
