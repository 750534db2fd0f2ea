"""Runs Payonce for real: replicas, failover, restore, duplicates, sweep. Prints figures, fails on a broken promise."""

import os
import subprocess
import sys
import tempfile
import time

from load import SKUS, Load, Shop, percentile
from stand import BINARY, ROOT, Haproxy, Payonce, Postgres, free_port, until

NOTHING = {
    "orders captured more than once":
        "select order_id from payment where status = 'succeeded' and not misdirected group by 1 having count(*) > 1",
    "captures that are not in the ledger once":
        "select p.id from payment p where (p.status = 'succeeded') <> (select count(*) = 2 from ledger_posting l "
        "where l.payment_id = p.id and l.refund_id is null)",
    "a ledger that does not sum to zero":
        "select currency from ledger_posting group by 1 having sum(amount) <> 0",
    "stock that is not what was there and what moved":
        "select sku from product p where stock < 0 or stock <> initial_stock + "
        "coalesce((select sum(delta) from stock_change m where m.product_id = p.id), 0)",
    "refunds that are not in the ledger once":
        "select r.id from refund r where (r.status = 'succeeded') <> (select count(*) = 2 from ledger_posting l "
        "where l.refund_id = r.id)",
    "refunds that come to more than was captured":
        "select p.id from payment p join refund r on r.payment_id = p.id where r.status <> 'failed' "
        "group by p.id having sum(r.amount) > p.amount",
    "goods of ended orders that did not come back, or came back from others":
        'select o.id from "order" o join order_line l on l.order_id = o.id '
        "where (o.status in ('cancelled', 'expired') and l.returned_at is null) "
        "or (o.status in ('pending', 'paid', 'partially_refunded') and l.returned_at is not null)",
    "orders whose state is not that of their money":
        """select o.id from "order" o left join payment p on p.order_id = o.id and p.status = 'succeeded'
        and not p.misdirected where (o.status in ('paid', 'partially_refunded', 'refunded'))
        is distinct from (p.id is not null)""",
    "mails that were written twice":
        "select kind from mail group by kind, subject_id having count(*) > 1",
    "unfinished records":
        "select operation from idempotency_record where state in ('processing', 'unknown')",
}

# How long payments may stay away when the primary is lost.
RETURN_MAX = 75


class Stand:
    """A database, a provider with a database of its own, and replicas of the shop."""

    def __init__(self, folder, replicas=1, standby=False, flags=("--sweep-cron=0 0 1 1 *",)):
        self.folder = folder
        self.primary = Postgres(folder, "primary")
        settings = ["synchronous_standby_names=*"] if standby else []
        self.primary.start("wal_level=replica")
        self.primary.sql("create database payonce", "postgres")
        url = self.primary.url()
        self.standby = None
        if standby:
            self.standby = Postgres(folder, "standby", standby_of=self.primary).start()
            self.primary.stop()
            self.primary.start(*settings)
            until("the standby follows", lambda: self.primary.sql(
                "select count(*) from pg_stat_replication where sync_state = 'sync'") == "1")
            url = f"postgres://payonce@127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}/payonce"
        self.url = url
        self.books = Postgres(folder, "books").start()
        self.books.sql("create database payonce", "postgres")
        first = free_port()
        self.provider = Payonce(folder, "provider", self.books.url(), 0,
                                f"--provider-webhook-url=http://127.0.0.1:{first}/v1/webhooks/provider").start()
        flags = [f"--provider-url=http://127.0.0.1:{self.provider.port}", "--demo", "--recover-every-ms=500",
                 "--workers=2", *flags]
        ports = [first] + [0] * (replicas - 1)
        # All at the same moment: one of them makes the schema, the others wait for it.
        self.replicas = [Payonce(folder, "serve", url, port, *flags).launch() for port in ports]
        for replica in self.replicas:
            replica.ready()
        values = ",".join(f"('{sku}', 'Soak', '', 100, 'EUR', 100000000, 100000000)" for sku in SKUS)
        self.primary.sql("insert into product (sku, name, description, price, currency, initial_stock, stock) "
                         f"values {values}")
        for replica in self.replicas:
            replica.stop()
            replica.start()

    def stop(self):
        for part in [*self.replicas, self.provider, self.books, self.primary, self.standby]:
            if part:
                part.stop()

    def check(self, database, paid):
        """Nothing lost, nothing doubled, and the provider's books say the same."""
        until("every record is finished", lambda: database.sql(
            "select count(*) from idempotency_record where state in ('processing', 'unknown')") == "0", 120)
        for what, query in NOTHING.items():
            found = database.sql(query)
            assert not found, f"{what}: {found}"
        for ours, theirs in [("payment", "charge"), ("refund", "refund")]:
            query = "select provider_key || ' ' || amount from {} where status = 'succeeded'"
            here = set(database.sql(query.format(ours)).splitlines())
            there = set(self.books.sql(query.format(f"provider.{theirs}")).splitlines())
            assert here == there, f"the provider's {theirs}s differ: {here ^ there}"
        known = set(database.sql("select 'pay_' || replace(id::text, '-', '') from payment "
                                 "where status = 'succeeded'").split())
        lost = [payment for _, _, payment, _ in paid if payment not in known]
        assert not lost, f"acknowledged payments that are gone: {lost}"
        reconcile(database.url(), self.provider.port)


def reconcile(url, provider_port):
    """The program's own comparison with the provider's ledger."""
    done = subprocess.run([BINARY, "reconcile", f"--database-url={url}", f"--secret={'5a' * 32}",
                           f"--provider-url=http://127.0.0.1:{provider_port}",
                           "--provider-webhook-secret=whsec_" + "c29haw" * 8], capture_output=True, text=True)
    assert done.returncode == 0, f"reconcile: {done.stdout}{done.stderr}"


def replicas(folder):
    """Two replicas behind HAProxy, restarted one after the other under load."""
    stand = Stand(folder, replicas=2)
    proxy = Haproxy(folder, [replica.port for replica in stand.replicas])
    try:
        shop = Shop(proxy.port)
        with Load(shop, buyers=4) as load:
            for _ in range(2):
                for replica in stand.replicas:
                    time.sleep(2)
                    replica.stop()
                    replica.start()
                    time.sleep(1)
        assert not load.broken, load.broken
        assert not shop.failures, f"{len(shop.failures)} failures: {shop.failures[:3]}"
        stand.check(stand.primary, load.paid)
        print(f"replicas: {len(load.paid)} payments, each asked for twice over two replicas, four restarts; "
              f"no failure, nothing doubled; p99 {percentile([t for _, t, _ in shop.times], 0.99) * 1000:.0f} ms")
    finally:
        proxy.stop()
        stand.stop()


def failover(folder):
    """The primary dies under load, the synchronous standby is promoted, the application follows."""
    lose_primary(folder, "failover", lambda primary: primary.kill())


def silence(folder):
    """The same with a primary that is cut off: it refuses nothing, it answers nothing, no connection breaks."""
    lose_primary(folder, "silence", lambda primary: primary.freeze())


def lose_primary(folder, name, lose):
    stand = Stand(folder, standby=True)
    try:
        shop = Shop(stand.replicas[0].port)
        with Load(shop, buyers=4) as load:
            time.sleep(4)
            lost = time.monotonic()
            lose(stand.primary)
            stand.standby.run("pg_ctl", "-D", stand.standby.data, "promote")
            promoted = time.monotonic()
            until("payments go on", lambda: [at for at, *_ in load.paid if at > promoted + 1], RETURN_MAX)
            time.sleep(8)
        assert not load.broken, load.broken
        before = [at for at, *_ in load.paid if at < lost]
        after = sorted(at for at, *_ in load.paid if at > promoted)
        assert before and after, f"{len(before)} payments before, {len(after)} after"
        stand.check(stand.standby, load.paid)
        print(f"{name}: {len(load.paid)} acknowledged payments, {len(before)} before the primary was lost; none lost, "
              f"none doubled; promoted after {promoted - lost:.1f} s, first payment after {after[0] - lost:.1f} s; "
              f"{len(shop.failures)} attempts failed and were sent again under their keys")
    finally:
        stand.primary.kill()
        stand.stop()


def restore(folder):
    """A backup under load, restored into a fresh database that the program approves."""
    stand = Stand(folder)
    try:
        shop = Shop(stand.replicas[0].port)
        file = os.path.join(folder, "payonce.dump")
        with Load(shop, buyers=3) as load:
            time.sleep(3)
        stand.check(stand.primary, load.paid)
        environment = {**os.environ, "PATH": stand.primary.bin + ":" + os.environ["PATH"]}
        subprocess.run([os.path.join(ROOT, "deploy", "backup"), stand.primary.url(), file], check=True, env=environment)
        stand.primary.sql("create database restored", "postgres")
        subprocess.run([os.path.join(ROOT, "deploy", "restore"), file, stand.primary.url("restored")], check=True, env=environment)
        for table in ["payment", "ledger_posting", '"order"', "idempotency_record"]:
            counts = [stand.primary.sql(f"select count(*) from {table}", name) for name in ("payonce", "restored")]
            assert counts[0] == counts[1], f"{table}: {counts}"
        reconcile(stand.primary.url("restored"), stand.provider.port)
        print(f"restore: {len(load.paid)} payments backed up, restored into a fresh database and reconciled")
    finally:
        stand.stop()


def main():
    from duplicates import duplicates
    from partitions import partitions
    from sweep import sweep
    scenarios = {"replicas": replicas, "failover": failover, "silence": silence, "restore": restore,
                 "duplicates": duplicates, "sweep": sweep, "partitions": partitions}
    names = sys.argv[1:] or list(scenarios)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="payonce-soak-") as folder:
            started = time.monotonic()
            scenarios[name](folder)
            print(f"  {name} took {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
