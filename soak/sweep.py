"""The sweep beside running orders; keeps the figures of docs/sweep.md and writes the page."""

import json
import os
import subprocess
import time

from load import Load, Shop, percentile
from stand import BINARY, ROOT

RECORDS = int(os.environ.get("SOAK_RECORDS", "1000000"))
SECONDS = int(os.environ.get("SOAK_SECONDS", "30"))

FIGURES = os.path.join(ROOT, "docs", "sweep.json")

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
        deadlocks = stand.primary.sql("select deadlocks from pg_stat_database where datname = 'payonce'")
        assert deadlocks == "0", f"{deadlocks} deadlocks"
    finally:
        stand.stop()
    keep("sweep", {"records": f"{RECORDS:,}", "processors": os.cpu_count(), "seconds": SECONDS, "rows": rows})
    print(rows)


def keep(part, figures):
    """Puts the figures of one run beside those of the other, and writes the page from both."""
    kept = {}
    if os.path.exists(FIGURES):
        with open(FIGURES, encoding="utf-8") as file:
            kept = json.load(file)
    kept[part] = figures
    with open(FIGURES, "w", encoding="utf-8") as file:
        file.write(json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    with open(os.path.join(ROOT, "docs", "sweep.md"), "w", encoding="utf-8") as page:
        page.write("".join(PAGES[name].format(**kept[name]) for name in PAGES if name in kept))


def beside_orders(stand):
    """Orders alone, beside three sweeps at once, alone again; then as many records in the room that is free."""
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
    alone += orders(shop, lambda: time.sleep(SECONDS))
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
        f"| orders alone, before and after: p50, p99 | {ms(alone, 0.5)}, {ms(alone, 0.99)} |",
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


def ms(times, share):
    return f"{percentile(times, share) * 1000:.1f} ms"


PAGES = {
    "sweep": """# What the sweep costs

Written by `scripts/soak sweep`: {records} expired records, swept in batches of 1000 by three processes at
once while three buyers order; {processors} processors, Postgres with its defaults, everything on one machine.

| | |
|---|---|
{rows}

No deadlock. The room of swept records is used again: as many records once more and the table has not grown.
Vacuum comes often enough because the table asks for it at 2 % dead rows instead of 20 %.
""",
    "partitions": """
## One table or many

Written by `scripts/soak partitions`: {records} records, a day of replies and the hour before, which is due.
The p99 are those of three buyers who order, {rounds} times {seconds} s beside an empty table in turns with
{rounds} times {seconds} s beside the full one, and then while the due hour is swept. A partition of an hour is
detached and dropped; elsewhere the program sweeps, resting half of its time.

| table | to fill it | size + indexes | p99 empty | p99 full | ratio | look-up of a key | sweep of the due hour | p99 beside it |
|---|---|---|---|---|---|---|---|---|
{rows}

The table stays plain: orders do not notice how many records lie beside them, and the due hour is swept in
seconds. Dropping an hour is the cheapest sweep there is, but then `(scope, key)` cannot be unique over all
hours: Postgres wants the partition key in every unique constraint. That constraint is what makes a duplicate
wait and fail, so it is not for sale. Each look-up of a key would go through every hour as well, and an hour is
detached under a lock that orders wait for. Partitions by hash of the scope keep the constraint, but each
holds records of every age: the sweep still deletes row by row, looks for the oldest in all of them, and
takes the longer for it.
""",
}
