"""Minutes of everything at once, with duplicates, clients that die and servers that go away. Nothing may be left over.

    scripts/soak load [SECONDS]

Shoppers order, pay with good and bad cards, refund, cancel and read at a bounded rate; guests fill carts in
the browser's way; a merchant corrects the stock. Some requests are sent twice at once, some again minutes
later and to another process first, some have their connection reset. In the middle the database restarts,
and Redis restarts, freezes and refuses to be written to; it forgets most of what it is told, because it may
keep two megabytes. A sweep runs every minute.
"""

import re
import sys
import tempfile
import time

from crowd import BUYERS, Mixed
from load import percentile
from run import Stand
from stand import Redis, until
from watch import Watch, series

MEMORY_RATIO_MAX = 1.05


def run(folder, seconds):
    redis = Redis(folder).start()
    stand = Stand(folder, replicas=2, flags=[f"--redis-url={redis.url()}", "--sweep-cron=* * * * *"])
    try:
        shop, other = stand.replicas
        mixed = Mixed(shop.port, other.port)
        mixed.fill()
        until("nothing is under way", lambda: at_rest(stand), 120)
        before = Watch(shop, stand.primary).look()
        mixed.span = seconds / 3
        with Watch(shop, stand.primary) as watch:
            mixed.run([mixed.somebody] * BUYERS + [mixed.repeat] * 2, lambda: troubles(stand, redis, mixed, seconds))
        report(stand, redis, mixed, watch, before, seconds)
    finally:
        stand.stop()
        redis.stop()


def troubles(stand, redis, mixed, seconds):
    """The database restarts in the middle; then Redis restarts, freezes and refuses to be written to."""
    def restart(part, *settings):
        part.stop()
        part.start(*settings)
    time.sleep(seconds * 0.45)
    mixed.away(lambda: restart(stand.primary, "wal_level=replica"))
    time.sleep(seconds * 0.07)
    restart(redis)
    time.sleep(seconds * 0.05)
    redis.freeze(3)
    # A replica of nobody: it can be read, and every write is an error.
    redis.ask("REPLICAOF", "127.0.0.1", "1")
    time.sleep(seconds * 0.05)
    redis.ask("REPLICAOF", "NO", "ONE")
    time.sleep(seconds * 0.38 - 3)
    mixed.stopping.set()


def at_rest(stand):
    """No key under way and no connection in use; jobs borrow one for a moment."""
    pages = [replica.get("/metrics") for replica in stand.replicas]
    held = [series(page, name) for page in pages for name in ("payonce_flights", 'payonce_pool_connections{state="in_use"}')]
    return not any(held) and stand.primary.sql(
        "select count(*) from idempotency_record where state in ('processing', 'unknown')") == "0"


def kept(stand):
    """Every reply on record: key, status, digest of its bytes."""
    rows = stand.primary.sql("select key || ' ' || status || ' ' || encode(sha256(body), 'hex') from idempotency_record")
    return {key: (int(status), digest) for key, status, digest in (row.split() for row in rows.splitlines())}


def report(stand, redis, mixed, watch, before, seconds):
    failed = [failure for shop in mixed.shops() for failure in shop.failures
              if not any(failure[0] <= ended and failure[1] >= began for began, ended in mixed.outages)]
    until("nothing is under way", lambda: at_rest(stand), 120)
    after = Watch(stand.replicas[0], stand.primary).look()
    print_table(mixed, watch, before, after, seconds)
    for replica in stand.replicas:
        print("under a key:", counted(replica, r'payonce_records_total{outcome="(\w+)"}'), "· looked up:",
              counted(replica, r'payonce_cache_lookups_total{(.*)}'))
    assert not mixed.broken, f"{len(mixed.broken)} could not go on: {mixed.broken[:3]}"
    assert not failed, f"{len(failed)} failures while all servers were there: {failed[:3]}"
    stand.check(stand.primary, [])
    on_record = kept(stand)
    differ = [key for key, told in mixed.told.items() if on_record.get(key) != told]
    assert not differ, f"{len(differ)} answers are not what is on record, {differ[:3]}"
    for_ever = [key for key in redis.ask("--scan").split() if redis.ask("PTTL", key) == "-1"]
    assert not for_ever, f"{len(for_ever)} values in Redis have no end"
    swept = sum(series(replica.get("/metrics"), "payonce_sweep_runs_total") for replica in stand.replicas)
    assert swept >= seconds // 60 - 1, f"{swept} sweeps in {seconds} s"
    assert after["in transaction"] == 0
    # A connection more or less to database and cache is no leak, as long as the pools are not full of them.
    assert after["connections"] <= 32 and after["files"] <= before["files"] + 16 + 8, (before, after)
    assert after["threads"] <= before["threads"] + 2, (before, after)
    (_, second, last), _ = watch.thirds("memory")
    assert last / second <= MEMORY_RATIO_MAX, f"memory grew: {second:.1f} MB, then {last:.1f} MB"
    times = [took for shop in mixed.shops() for _, took, _ in shop.times]
    print(f"load: {seconds} s, {len(times):,} answers, {len(mixed.told):,} keys, each with the same bytes for everybody "
          f"and on record; {mixed.count['sent twice at once'] + mixed.count['sent again later']} duplicates, "
          f"{mixed.count['reset by the client']} resets by the client, database and Redis restarted; left at the end: "
          f"{after['flights']:.0f} keys under way, {after['files']} file handles ({before['files']} before), "
          f"{after['connections']} connections ({before['connections']}); memory {second:.1f} MB in the second third, "
          f"{last:.1f} MB in the last; p50 {percentile(times, 0.5) * 1000:.0f} ms, p99 {percentile(times, 0.99) * 1000:.0f} ms")


def counted(replica, series_of):
    found = re.findall(rf"^{series_of} (\d+)$", replica.get("/metrics"), re.M)
    return ", ".join(f"{count} {name}" for name, count in found if count != "0")


def print_table(mixed, watch, before, after, seconds):
    print(f"{seconds} s:", ", ".join(f"{count} {what}" for what, count in mixed.count.items()))
    print("| held by the process | before | first third | second third | last third | most | after |")
    print("|---|---|---|---|---|---|---|")
    for what in before:
        thirds, most = watch.thirds(what)
        cells = [before[what], *thirds, most, after[what]]
        print(f"| {what} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |", flush=True)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    with tempfile.TemporaryDirectory(prefix="payonce-load-") as folder:
        run(folder, seconds)


if __name__ == "__main__":
    main()
