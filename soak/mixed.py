"""Minutes of everything at once, with duplicates, clients that die and servers that go away. Nothing may be left over.

    scripts/soak load [SECONDS]

Shoppers order, pay with good and bad cards, refund, cancel and read at a bounded rate; guests fill carts in
the browser's way; a merchant corrects the stock. Some requests are sent twice at once, some again minutes
later, some have their connection reset. In the middle the database restarts, and Redis restarts, freezes and
refuses to be written to; it forgets most of what it is told, because it may keep two megabytes. A sweep
runs every minute.
"""

import hashlib
import heapq
import os
import random
import re
import sys
import tempfile
import threading
import time
import uuid

from guest import Guest
from load import SKUS, Shop, percentile
from run import Stand
from stand import Redis, until
from watch import Watch, series

RATE = float(os.environ.get("SOAK_RATE", "8"))  # things that somebody does, a second
BUYERS = 24
DUPLICATES = 0.05
RESETS = 0.01
# Cards and how often they are used; what is not listed here is answered in another way than 201 or 402.
CARDS = {"pm_card_ok": 70, "pm_card_declined": 8, "pm_card_insufficient_funds": 4, "pm_card_slow": 4,
         "pm_card_lost_answer": 3, "pm_card_reset": 4, "pm_card_key_in_use": 4}
# Replies that fill the memory for replies, so that it cannot grow afterwards.
FILLING = int(os.environ.get("SOAK_FILLING", "6000"))
LONG_NOTE = "\N{BELL}" * 500
MEMORY_RATIO_MAX = 1.05
# How long after a server is back a request may still have met its absence.
AFTERWARDS_S = 6


class Mixed:
    """What everybody does, and every answer that was ever given under a key."""

    def __init__(self, port):
        self.shopper, self.merchant = Shop(port), Shop(port, "merchant@payonce.test")
        self.port, self.lock, self.stopping = port, threading.Lock(), threading.Event()
        self.told, self.later, self.broken, self.outages = {}, [], [], []
        self.count = dict.fromkeys(["orders", "payments", "refunds", "cancellations", "receipts", "carts", "corrections",
                                    "reads", "sent twice at once", "sent again later", "reset by the client",
                                    "turned away by the provider"], 0)
        self.next, self.span = 0.0, 60.0

    # Requests.

    def did(self, what):
        with self.lock:
            self.count[what] += 1

    def ask(self, shop, path, body, key):
        """An answer that counts; the first under its key is remembered, all others are compared with it."""
        status, answer, raw = shop.ask("POST", path, body, key)
        seen = (status, hashlib.sha256(raw).hexdigest())
        with self.lock:
            first = self.told.setdefault(key, seen)
        assert first == seen, f"two answers under {key} of {path}: {first}, then {seen} {raw[:200]}"
        return status, answer

    def post(self, path, body=None, shop=None):
        """One thing that changes something: once, or as impatient and unlucky clients do it."""
        shop, key, chance = shop or self.shopper, str(uuid.uuid4()), random.random()
        if random.random() < RESETS:
            self.did("reset by the client")
            try:
                shop.reset("POST", path, body, key, random.uniform(0, 0.05))
            except OSError:
                pass  # nobody was there to hang up on
        if chance < DUPLICATES / 2:
            self.did("sent twice at once")
            return self.twice(shop, path, body, key)
        if chance < DUPLICATES:
            with self.lock:
                heapq.heappush(self.later, (time.monotonic() + random.uniform(1, self.span), key, path, body, shop))
        return self.ask(shop, path, body, key)

    def twice(self, shop, path, body, key):
        second = threading.Thread(target=self.guarded, args=(lambda: self.ask(shop, path, body, key),))
        second.start()
        answer = self.ask(shop, path, body, key)
        second.join()
        return answer

    def get(self, path):
        self.did("reads")
        status, answer, _ = self.shopper.ask("GET", path, None)
        assert status == 200, f"GET {path}: {status} {answer}"
        return answer

    # Things that people do.

    def order(self, **more):
        lines = [{"sku": sku, "quantity": random.randint(1, 3)} for sku in random.sample(SKUS, random.randint(1, 3))]
        status, order = self.post("/v1/orders", {"lines": lines, "email": "ada@example.com", **more})
        assert status == 201, (status, order)
        self.did("orders")
        return order["id"]

    def pay(self, order, card):
        status, payment = self.post(f"/v1/orders/{order}/payments", {"payment_method": card})
        assert status in (201, 402), (status, payment)
        self.did("payments")
        return payment.get("id") if status == 201 else None

    def buy(self):
        """Orders and pays, with another card under another key if the first one is no good."""
        order = self.order()
        if random.random() < 0.03:
            self.turned_away(order)
        payment = self.pay(order, random.choices(list(CARDS), CARDS.values())[0]) or self.pay(order, "pm_card_ok")
        assert self.get(f"/v1/payments/{payment}")["status"] == "succeeded"
        if random.random() < 0.3:
            self.refund(order, payment)
        if random.random() < 0.1:
            assert self.post(f"/v1/orders/{order}/receipts")[0] == 202
            self.did("receipts")
        assert self.get(f"/v1/orders/{order}")["status"] in ("paid", "partially_refunded", "refunded")

    def turned_away(self, order):
        """A provider that takes no charges frees the key, and says so."""
        status, _, _ = self.shopper.once("POST", f"/v1/orders/{order}/payments", {"payment_method": "pm_card_down"},
                                         str(uuid.uuid4()))
        assert status in (409, 503), status
        self.did("turned away by the provider")

    def refund(self, order, payment):
        for body in random.choice([[{"amount": {"amount": 1, "currency": "EUR"}}, {}], [{}], [{"restock": True}]]):
            status, refund = self.post(f"/v1/payments/{payment}/refunds", body)
            assert status == 201, (status, refund)
            self.did("refunds")
            self.get(f"/v1/refunds/{refund['id']}")

    def cancel(self):
        order = self.order(note="Never mind.")
        status, answer = self.post(f"/v1/orders/{order}/cancel")
        assert status == 200 and answer["status"] == "cancelled", (status, answer)
        self.did("cancellations")

    def fill_cart(self):
        _, page = Guest(self.port).buy(random.choice(SKUS), "pm_card_ok")
        assert "Paid once" in page, page[:500]
        self.did("carts")

    def look(self):
        for path in random.sample(["/v1/products", f"/v1/products/{SKUS[0]}", "/v1/orders?limit=5", "/v1/accounts/me",
                                   "/.well-known/idempotency"], 3):
            self.get(path)

    def correct(self):
        path = f"/v1/products/{random.choice(SKUS)}/stock-movements"
        status, answer = self.post(path, {"delta": random.choice([-3, 5]), "reason": "Counted again."}, self.merchant)
        assert status == 201, (status, answer)
        self.did("corrections")

    # Who does them, and when.

    def guarded(self, what):
        try:
            what()
        except BaseException as error:  # whoever cannot go on is a finding, whatever it was
            with self.lock:
                self.broken.append(f"{type(error).__name__}: {error}")

    def somebody(self):
        doings = {self.buy: 50, self.cancel: 14, self.fill_cart: 8, self.look: 26, self.correct: 2}
        while not self.stopping.is_set():
            with self.lock:
                self.next = max(self.next, time.monotonic()) + 1 / RATE
                wait = self.next - time.monotonic()
            if self.stopping.wait(max(0, wait)):
                return
            self.guarded(random.choices(list(doings), doings.values())[0])

    def repeat(self):
        """Sends again what its client believes to be lost."""
        while True:
            with self.lock:
                due = self.later and (self.stopping.is_set() or self.later[0][0] <= time.monotonic())
                again = heapq.heappop(self.later) if due else None
            if again:
                _, key, path, body, shop = again
                self.did("sent again later")
                self.guarded(lambda: self.ask(shop, path, body, key))
            elif self.stopping.wait(0.05):
                return

    def fill(self):
        """As many long replies as the process keeps in memory."""
        def some():
            for _ in range(FILLING // BUYERS):
                self.order(note=LONG_NOTE)
        self.run([some] * BUYERS, lambda: None)
        self.count = dict.fromkeys(self.count, 0)

    def run(self, doings, meanwhile):
        threads = [threading.Thread(target=self.guarded, args=(doing,), daemon=True) for doing in doings]
        for thread in threads:
            thread.start()
        meanwhile()
        for thread in threads:
            thread.join(240)
            assert not thread.is_alive(), "somebody still waits for an answer"

    def away(self, what):
        """A time in which answers may fail."""
        began = time.monotonic()
        what()
        self.outages.append((began, time.monotonic() + AFTERWARDS_S))


def run(folder, seconds):
    redis = Redis(folder).start()
    stand = Stand(folder, flags=[f"--redis-url={redis.url()}", "--sweep-cron=* * * * *"])
    try:
        mixed, shop = Mixed(stand.replicas[0].port), stand.replicas[0]
        mixed.fill()
        until("nothing is under way", lambda: at_rest(stand, shop), 120)
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


def at_rest(stand, shop):
    """No key under way and no connection in use; jobs borrow one for a moment."""
    seen = Watch(shop, stand.primary).look()
    return seen["flights"] == 0 and seen["pool in use"] == 0 and stand.primary.sql(
        "select count(*) from idempotency_record where state in ('processing', 'unknown')") == "0"


def kept(stand):
    """Every reply on record: key, status, digest of its bytes."""
    rows = stand.primary.sql("select key || ' ' || status || ' ' || encode(sha256(body), 'hex') from idempotency_record")
    return {key: (int(status), digest) for key, status, digest in (row.split() for row in rows.splitlines())}


def report(stand, redis, mixed, watch, before, seconds):
    failed = [failure for shop in (mixed.shopper, mixed.merchant) for failure in shop.failures
              if not any(began <= failure[0] <= ended for began, ended in mixed.outages)]
    until("nothing is under way", lambda: at_rest(stand, stand.replicas[0]), 120)
    after = Watch(stand.replicas[0], stand.primary).look()
    print_table(mixed, watch, before, after, seconds)
    outcomes = re.findall(r'^payonce_records_total\{outcome="(\w+)"\} (\d+)$', stand.replicas[0].get("/metrics"), re.M)
    print("under a key, the filling included:", ", ".join(f"{count} {name}" for name, count in outcomes if count != "0"))
    assert not mixed.broken, f"{len(mixed.broken)} could not go on: {mixed.broken[:3]}"
    assert not failed, f"{len(failed)} failures while all servers were there: {failed[:3]}"
    stand.check(stand.primary, [])
    on_record = kept(stand)
    differ = [key for key, told in mixed.told.items() if on_record.get(key) != told]
    assert not differ, f"{len(differ)} answers are not what is on record, {differ[:3]}"
    for_ever = [key for key in redis.ask("--scan").split() if redis.ask("PTTL", key) == "-1"]
    assert not for_ever, f"{len(for_ever)} values in Redis have no end"
    swept = series(stand.replicas[0].get("/metrics"), "payonce_sweep_runs_total")
    assert swept >= seconds // 60 - 1, f"{swept} sweeps in {seconds} s"
    assert after["in transaction"] == 0
    # A connection more or less to database and cache is no leak, as long as the pools are not full of them.
    assert after["connections"] <= 16 and after["files"] <= before["files"] + 16 + 8, (before, after)
    assert after["threads"] <= before["threads"] + 2, (before, after)
    (_, second, last), _ = watch.thirds("memory")
    assert last / second <= MEMORY_RATIO_MAX, f"memory grew: {second:.1f} MB, then {last:.1f} MB"
    times = [took for shop in (mixed.shopper, mixed.merchant) for _, took, _ in shop.times]
    print(f"load: {seconds} s, {len(times):,} answers, {len(mixed.told):,} keys, each with the same bytes for everybody "
          f"and on record; {mixed.count['sent twice at once'] + mixed.count['sent again later']} duplicates, "
          f"{mixed.count['reset by the client']} resets by the client, database and Redis restarted; left at the end: "
          f"{after['flights']:.0f} keys under way, {after['files']} file handles ({before['files']} before), "
          f"{after['connections']} connections ({before['connections']}); memory {second:.1f} MB in the second third, "
          f"{last:.1f} MB in the last; p50 {percentile(times, 0.5) * 1000:.0f} ms, p99 {percentile(times, 0.99) * 1000:.0f} ms")


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
