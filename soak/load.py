"""Buyers who order and pay, send everything twice, and ask again under the same key until they know."""

import http.client
import json
import random
import socket
import struct
import threading
import time
import uuid

PASSWORD = "click-twice-pay-once"
SKUS = ["soak-1", "soak-2", "soak-3", "soak-4"]
# What a client may meet and must answer with the same request again.
AGAIN = {409, 429, 500, 502, 503, 504}


class Shop:
    """An address where requests go, and what was seen there."""

    def __init__(self, port, email="shopper@payonce.test"):
        self.port, self.lock = port, threading.Lock()
        # When, how long, where; from when to when, status, what was said.
        self.times, self.failures, self.token = [], [], None
        self.token = self.ask("POST", "/v1/sessions", {"email": email, "password": PASSWORD})[1]["token"]

    def once(self, method, path, body, key=None):
        """One attempt: status, headers, body bytes."""
        connection = self.sent(method, path, body, key)
        try:
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def sent(self, method, path, body, key=None):
        """A connection that waits for the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if key:
            headers["Idempotency-Key"] = key
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        except OSError:
            connection.close()
            raise
        return connection

    def reset(self, method, path, body, key, after):
        """Sends a request and resets the connection, as a client does that dies."""
        connection = self.sent(method, path, body, key)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        time.sleep(after)
        connection.close()

    def ask(self, method, path, body, key=None, patience=120):
        """The same request until there is an answer that counts."""
        end = time.monotonic() + patience
        while True:
            started = time.monotonic()
            try:
                status, _, raw = self.once(method, path, body, key)
            except (OSError, http.client.HTTPException) as error:
                status, raw = 0, repr(error).encode()
            if status == 0 or status >= 500:
                with self.lock:
                    self.failures.append((started, time.monotonic(), status, raw[:200]))
            answer = json.loads(raw) if raw.startswith(b"{") else {}
            if status and not (status in AGAIN and answer.get("retryable", True)):
                with self.lock:
                    self.times.append((started, time.monotonic() - started, path))
                return status, answer, raw
            if time.monotonic() > end:
                raise SystemExit(f"{method} {path} got no answer in {patience} s: {status} {raw[:300]}")
            time.sleep(random.uniform(0.02, 0.15))


class Load:
    """Several buyers at once until told to stop."""

    def __init__(self, shop, buyers=6, pay=True, twice=True, pause=0.0):
        self.shop, self.pay, self.twice, self.pause = shop, pay, twice, pause
        self.paid, self.broken, self.stopping = [], [], threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.buy, daemon=True) for _ in range(buyers)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join(120)

    def buy(self):
        while not self.stopping.is_set():
            try:
                self.one()
            except BaseException as error:  # a buyer who cannot go on is a finding, whatever it was
                with self.lock:
                    self.broken.append(repr(error))
                return
            time.sleep(self.pause)

    def one(self):
        body = {"lines": [{"sku": sku, "quantity": 1} for sku in random.sample(SKUS, 2)]}
        status, order, _ = self.doubled("/v1/orders", body)
        assert status == 201, (status, order)
        if not self.pay:
            return
        path = f"/v1/orders/{order['id']}/payments"
        status, payment, raw = self.doubled(path, {"payment_method": "pm_card_ok"})
        assert status == 201, (status, payment)
        with self.lock:
            self.paid.append((time.monotonic(), order["id"], payment["id"], raw))

    def doubled(self, path, body):
        """Two at once under one key; both must get the same bytes."""
        key, answers = str(uuid.uuid4()), []
        def ask():
            answers.append(self.shop.ask("POST", path, body, key))
        second = threading.Thread(target=ask) if self.twice else None
        if second:
            second.start()
        ask()
        if second:
            second.join()
        assert len(answers) == (2 if second else 1), f"a duplicate of {key} got no answer"
        assert len({raw for _, _, raw in answers}) == 1, f"two answers under {key}: {answers}"
        return answers[0]


def percentile(times, share):
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")
