"""Ten million records in one table and in partitions: what an order costs beside them, a look-up, and a sweep."""

import os
import subprocess
import time

from load import Shop, percentile
from stand import BINARY
from sweep import keep, orders, ms

RECORDS = int(os.environ.get("SOAK_RECORDS", "10000000"))
ROUNDS = int(os.environ.get("SOAK_ROUNDS", "4"))
SECONDS = int(os.environ.get("SOAK_SECONDS", "15"))
LOOK_UPS = 20000

# A day of replies and the hour before, which is due to be swept.
FILL = f"""
insert into full_record (scope, key, fingerprint, marks, operation, state, finished_at, expires_at, status, headers, body)
select decode(md5(n::text), 'hex'), 'soak-' || n, sha256(n::text::bytea), ''::bytea, 'POST /v1/orders', 'completed',
       at - interval '24 hours', at, 201, ''::bytea, decode(repeat('7b', 400), 'hex')
from (select n, now() - interval '1 hour' + n * interval '25 hours' / {RECORDS} as at
      from generate_series(1, {RECORDS}) n) as each
"""
LIKE = "create table full_record (like idempotency_record including defaults including constraints including storage)"
OPTIONS = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1"
INDEXES = """
create index on full_record (expires_at) where state in ('completed', 'failed');
create index on full_record (recover_at) where state in ('processing', 'unknown');
create index on full_record (scope) where state in ('processing', 'unknown');
"""
PRIMARY = "alter table full_record add constraint full_record_pkey primary key (scope, key)"
# The key alone cannot be unique over partitions by time.
WEAKER = "alter table full_record add constraint full_record_key unique nulls not distinct (scope, key, expires_at)"
HASHED = "; ".join([LIKE + " partition by hash (scope)"] + [
    f"create table hashed_{part} partition of full_record for values with (modulus 16, remainder {part}) with ({OPTIONS})"
    for part in range(16)])
HOURS = f"""
{LIKE} partition by range (expires_at);
create table hour_none partition of full_record default;
do $$ begin for hour in -1..25 loop
    execute format('create table hour_%s partition of full_record for values from (%L) to (%L) with ({OPTIONS})',
        hour + 1, date_trunc('hour', now()) + hour * interval '1 hour', date_trunc('hour', now()) + (hour + 1) * interval '1 hour');
end loop; end $$
"""
VARIANTS = {
    "one table": (f"{LIKE} with ({OPTIONS})", PRIMARY),
    "16 partitions by hash of the scope": (HASHED, PRIMARY),
    "a partition for each hour of expiry": (HOURS, WEAKER),
}
LOOK = f"""
do $$ declare found bytea; n int; begin for i in 1..{LOOK_UPS} loop
    n := 1 + floor(random() * {RECORDS});
    select body into found from idempotency_record where scope = decode(md5(n::text), 'hex') and key = 'soak-' || n;
end loop; end $$
"""
SIZE = """
select coalesce(sum(pg_relation_size(relid)), 0) / 1048576 || ' ' || coalesce(sum(pg_indexes_size(relid)), 0) / 1048576
from (select relid from pg_partition_tree('full_record') union select 'full_record'::regclass) as parts
"""


def partitions(folder):
    """Writes its part of docs/sweep.md."""
    rows = []
    for number, (name, variant) in enumerate(VARIANTS.items()):
        inner = os.path.join(folder, str(number))
        os.mkdir(inner)
        os.chmod(folder, 0o755)
        rows.append(f"| {name} | " + " | ".join(measured(inner, variant)) + " |")
        print(rows[-1], flush=True)
        subprocess.run(["rm", "-rf", inner], check=True)
    keep("partitions", {"records": f"{RECORDS:,}", "rounds": ROUNDS, "seconds": SECONDS, "rows": "\n".join(rows),
                        "processors": os.cpu_count()})


def measured(folder, variant):
    """Orders in turns beside an empty table and beside the full one, look-ups, then the sweep with orders."""
    from run import Stand
    stand = Stand(folder)
    try:
        database, shop = stand.primary, Shop(stand.replicas[0].port)
        took = fill(database, variant)
        table, indexes = database.sql(SIZE).split()
        empty, full = [], []
        for _ in range(ROUNDS):
            empty += orders(shop, lambda: time.sleep(SECONDS))
            swap(database, "empty_record", "full_record")
            full += orders(shop, lambda: time.sleep(SECONDS))
            swap(database, "full_record", "empty_record")
        swap(database, "empty_record", "full_record")
        started = time.monotonic()
        database.sql(LOOK)
        look = (time.monotonic() - started) / LOOK_UPS
        swept = []
        beside = orders(shop, lambda: swept.append(sweep(database)))
        rows, seconds = swept[0]
        ratio = percentile(full, 0.99) / percentile(empty, 0.99)
        return [f"{took:.0f} s", f"{int(float(table)):,} MB + {int(float(indexes)):,} MB", f"{ms(empty, 0.99)}", f"{ms(full, 0.99)}",
                f"{ratio:.2f}", f"{look * 1e6:.0f} µs", f"{rows:,} in {seconds:.1f} s", ms(beside, 0.99)]
    finally:
        stand.stop()


def fill(database, variant):
    create, unique = variant
    started = time.monotonic()
    database.sql(create)
    database.sql(FILL)
    database.sql("set maintenance_work_mem = '1GB'; " + unique)
    database.sql("set maintenance_work_mem = '1GB'; " + INDEXES)
    database.sql("vacuum analyze full_record")
    database.sql("checkpoint")
    return time.monotonic() - started


def swap(database, old, new):
    """The shop goes on with another table; its statements are planned again."""
    database.sql(f"begin; alter table idempotency_record rename to {old}; "
                 f"alter table {new} rename to idempotency_record; commit")


def sweep(database):
    """As the program does it; partitions of one hour are dropped."""
    due = "select count(*) from idempotency_record where expires_at <= clock_timestamp() and state in ('completed', 'failed')"
    before = int(database.sql(due))
    started = time.monotonic()
    hour = database.sql("select to_regclass('hour_0')")
    if hour:
        before = int(database.sql("select count(*) from hour_0"))
        # Not concurrently, which Postgres refuses beside a default partition, where unfinished records have to be.
        started = time.monotonic()
        database.sql("alter table idempotency_record detach partition hour_0")
        database.sql("drop table hour_0")
    else:
        subprocess.run([BINARY, "sweep", f"--database-url={database.url()}", "--log=warn"], check=True, stdout=subprocess.DEVNULL)
    return before, time.monotonic() - started
