"""The sweep beside running orders, and whether partitions would do it better."""

import os
import subprocess
import time

from load import Load, Shop, percentile
from stand import BINARY, ROOT

RECORDS = int(os.environ.get("SOAK_RECORDS", "1000000"))
COMPARED = int(os.environ.get("SOAK_COMPARED", RECORDS // 4))
SECONDS = int(os.environ.get("SOAK_SECONDS", "30"))

FILL = """
insert into {table} (scope, key, fingerprint, marks, operation, state, finished_at, expires_at, status, headers, body)
select uuid_send(gen_random_uuid()), 'soak-' || n, sha256(n::text::bytea), ''::bytea, 'POST /v1/orders', 'completed',
       now() - interval '25 hours', now() - interval '1 hour' + n * interval '1 microsecond', 201, ''::bytea,
       decode(repeat('7b', 400), 'hex')
from generate_series(1, {records}) n
"""
SIZE = "select pg_relation_size('{0}') / 1048576 || ' ' || pg_indexes_size('{0}') / 1048576"
BATCHES = """
do $$ declare swept bigint; begin loop
    delete from {table} r using (
        select scope, key from {table}
        where state in ('completed', 'failed') and expires_at <= clock_timestamp()
        order by expires_at limit 1000 for update skip locked) gone
    where r.scope = gone.scope and r.key = gone.key;
    get diagnostics swept = row_count;
    commit;
    exit when swept < 1000;
end loop; end $$
"""


def sweep(folder):
    """Writes docs/sweep.md."""
    from run import Stand
    stand = Stand(folder)
    try:
        rows = beside_orders(stand)
        partitions = plain_and_partitioned(stand.primary)
        deadlocks = stand.primary.sql("select deadlocks from pg_stat_database where datname = 'payonce'")
        assert deadlocks == "0", f"{deadlocks} deadlocks"
    finally:
        stand.stop()
    with open(os.path.join(ROOT, "docs", "sweep.md"), "w", encoding="utf-8") as page:
        page.write(PAGE.format(compared=f"{COMPARED:,}", records=f"{RECORDS:,}", processors=os.cpu_count(), rows=rows, partitions=partitions))
    print(rows, partitions, sep="\n")


def beside_orders(stand):
    """Orders alone, then orders while three sweeps run at once; the same again with the room used again."""
    database = stand.primary
    shop = Shop(stand.replicas[0].port)
    empty = sizes(database)
    alone = orders(shop, lambda: time.sleep(SECONDS))
    database.sql(FILL.format(table="idempotency_record", records=RECORDS))
    database.sql("vacuum analyze idempotency_record")
    full = sizes(database)
    took = []
    beside = orders(shop, lambda: took.append(three_sweeps(database)))
    print(f"  swept in {took[0]:.0f} s", flush=True)
    left = database.sql("select count(*) from idempotency_record where expires_at <= clock_timestamp()")
    assert left == "0", f"{left} expired records are left"
    vacuum(database)
    swept = sizes(database)
    database.sql(FILL.format(table="idempotency_record", records=RECORDS))
    again = sizes(database)
    database.sql(BATCHES.format(table="idempotency_record"))
    for name, size in [("before", empty), ("full", full), ("swept", swept), ("filled again", again)]:
        print(f"  table and indexes {name}: {size} MB", flush=True)
    return "\n".join([
        f"| three sweeps at once, with orders | {took[0]:.0f} s, {RECORDS / took[0]:,.0f} records/s |",
        f"| orders alone: p50, p99 | {ms(alone, 0.5)}, {ms(alone, 0.99)} |",
        f"| orders beside the sweeps: p50, p99 | {ms(beside, 0.5)}, {ms(beside, 0.99)} |",
        f"| ratio of the p99 | {percentile(beside, 0.99) / percentile(alone, 0.99):.2f} |",
        f"| table, indexes: full | {full[0]} MB, {full[1]} MB |",
        f"| after sweep and vacuum | {swept[0]} MB, {swept[1]} MB |",
        f"| after as many records again | {again[0]} MB, {again[1]} MB |",
    ])


def vacuum(database):
    """Twice, as autovacuum does in time: an emptied index page is free for use only when no snapshot can see it."""
    for _ in range(2):
        database.sql("vacuum idempotency_record")
        database.sql("select txid_current()")


def sizes(database):
    return database.sql(SIZE.format("idempotency_record")).split()


def orders(shop, meanwhile):
    """Latencies of single orders while something happens."""
    shop.times.clear()
    with Load(shop, buyers=3, pay=False, twice=False, pause=0.02) as load:
        time.sleep(2)
        shop.times.clear()
        meanwhile()
        times = [time for _, time, path in shop.times if path == "/v1/orders"]
    assert not load.broken and not shop.failures, (load.broken[:2], shop.failures[:2])
    return times


def three_sweeps(database):
    started = time.monotonic()
    command = [BINARY, "sweep", f"--database-url={database.url()}", "--log=warn"]
    sweeps = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    for running in sweeps:
        assert running.wait() == 0, "a sweep failed"
    return time.monotonic() - started


def plain_and_partitioned(database):
    """The same records, the same statement, a table as it is and one in sixteen partitions."""
    database.sql("create table plain (like idempotency_record including all)")
    database.sql("create table parted (like idempotency_record including all) partition by hash (scope)")
    for part in range(16):
        database.sql(f"create table parted_{part} partition of parted for values with (modulus 16, remainder {part})")
    rows = []
    for table, name in [("plain", "plain"), ("parted", "sixteen hash partitions")]:
        started = time.monotonic()
        database.sql(FILL.format(table=table, records=COMPARED))
        filled = time.monotonic()
        database.sql(f"vacuum analyze {table}")
        before = time.monotonic()
        database.sql(BATCHES.format(table=table))
        swept = time.monotonic()
        rows.append(f"| {name} | {COMPARED / (filled - started):,.0f}/s | {COMPARED / (swept - before):,.0f}/s |")
    return "\n".join(rows)


def ms(times, share):
    return f"{percentile(times, share) * 1000:.1f} ms"


PAGE = """# What the sweep costs

Written by `scripts/soak sweep`: {records} expired records, swept in batches of 1000 by three processes at
once while three buyers order; {processors} processors, Postgres with its defaults, everything on one machine.

| | |
|---|---|
{rows}

The room of swept records is used again: as many records once more and the table has not grown. Vacuum
comes often enough because the table asks for it at 2 % dead rows instead of 20 %.

## Plain or partitioned

{compared} records, one connection, nothing else running.

| table | insert | sweep |
|---|---|---|
{partitions}

The table stays plain. Dropping a partition would be a cheaper sweep only if partitions were cut by
expiry, and then `(scope, key)` could not be unique over all of them: Postgres wants the partition key in
every unique constraint. That constraint is what makes a duplicate wait and fail, so it is not for sale.
Partitions by hash of the scope keep it, but each holds records of every age, so a sweep still deletes
row by row, and its ordered look goes through all of them.
"""
