"""Everybody who uses a shop at once: what they do, how impatient and unlucky they are, and every answer they got."""

import hashlib
import heapq
import os
import random
import threading
import time
import uuid

from guest import Guest
from load import SKUS, Shop

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
# How long after a server is back a request may still have met its absence.
AFTERWARDS_S = 6


class Mixed:
    """What everybody does, and every answer that was ever given under a key."""

    def __init__(self, port, elsewhere=None):
        self.shopper, self.merchant = Shop(port), Shop(port, "merchant@payonce.test")
        # The same people at another process, where what is sent again arrives first.
        self.shopper.elsewhere = Shop(elsewhere or port)
        self.merchant.elsewhere = Shop(elsewhere or port, "merchant@payonce.test")
        self.port, self.lock, self.stopping = port, threading.Lock(), threading.Event()
        self.told, self.later, self.broken, self.outages = {}, [], [], []
        self.count = dict.fromkeys(["orders", "payments", "refunds", "cancellations", "receipts", "carts", "corrections",
                                    "reads", "sent twice at once", "sent again later", "reset by the client",
                                    "turned away by the provider"], 0)
        self.next, self.span = 0.0, 60.0

    def shops(self):
        return [self.shopper, self.merchant, self.shopper.elsewhere, self.merchant.elsewhere]

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
                for asked in (shop.elsewhere, shop):
                    self.guarded(lambda asked=asked: self.ask(asked, path, body, key))
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
