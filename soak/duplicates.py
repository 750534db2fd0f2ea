"""A crowd of duplicates of one running key, seen from outside: what do others notice?"""

import asyncio
import hashlib
import json
import multiprocessing
import os
import threading
import time
import urllib.request
import uuid

from load import SKUS, Shop, percentile
from stand import ROOT

CROWD = 1000
ROUNDS = 8
# The provider takes this long, and so the first request; the others arrive within the first part of it.
CHARGE_S = 4.0
ARRIVAL_S = 1.0
MOST_CONNECTIONS = 2
RATIO_MAX = 1.5

BUSY_CONNECTIONS = """
create or replace function most_at_work(seconds float) returns int language plpgsql as $$
declare
    most int := 0;
    found int;
    until timestamptz := clock_timestamp() + seconds * interval '1 second';
begin
    while clock_timestamp() < until loop
        perform pg_stat_clear_snapshot();
        select count(*) into found from pg_stat_activity where application_name = 'payonce' and state <> 'idle';
        most := greatest(most, found);
        perform pg_sleep(0.002);
    end loop;
    return most;
end $$"""


PAGE = """# What a crowd of duplicates costs others

Written by `scripts/soak duplicates`: {rounds} times {crowd} duplicates of one running payment, from a
process of their own, each on its own connection, sent within {arrival} s while the provider takes {charge} s.
All were answered 201 with the same bytes, one of them as the first. Meanwhile a third process orders, one
order after the other, on a connection of its own; {processors} processors, everything on one machine. In turns
with that it orders alone.

| others' orders | number | p50 | p99 | ratio of the p99 |
|---|---|---|---|---|
{rows}

Connections of the server that were at work at one moment, with nobody else there: {at_work} with the crowd,
{at_rest} without it, which is what its jobs take.
"""


def request(path, body, key, token):
    body = json.dumps(body).encode()
    head = (f"POST {path} HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\n"
            f"Idempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


async def answer(reader):
    """Status, whether it is a replay, body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length:"))
    return int(head.split(" ")[1]), "idempotency-replayed: true" in head, await reader.readexactly(length)


def crowd(port, pipe):
    """A process of its own: for each message it opens its connections and, told to go, sends it from all of them."""
    async def one(connection, message, wait):
        reader, writer = connection
        await asyncio.sleep(wait)
        writer.write(message)
        return await answer(reader)

    async def run():
        while (message := pipe.recv()) is not None:
            connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CROWD)]
            pipe.send("ready")
            pipe.recv()
            asked = [one(each, message, ARRIVAL_S * i / CROWD) for i, each in enumerate(connections)]
            answers = await asyncio.gather(*asked)
            pipe.send((sorted({status for status, _, _ in answers}), sum(not replay for _, replay, _ in answers),
                       len({hashlib.sha256(body).digest() for _, _, body in answers})))
            for _, writer in connections:
                writer.close()
    asyncio.run(run())


def somebody_else(port, token, stopping, pipe):
    """A process of its own: orders, one after the other, each with when it was sent and how long it took."""
    async def run():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        times, statuses = [], set()
        while not stopping.is_set():
            body = {"lines": [{"sku": SKUS[len(times) % len(SKUS)], "quantity": 1}]}
            message = request("/v1/orders", body, str(uuid.uuid4()), token)
            started = time.monotonic()
            writer.write(message)
            status, _, _ = await answer(reader)
            times.append((started, time.monotonic() - started))
            statuses.add(status)
            await asyncio.sleep(0.002)
        pipe.send((times, statuses))
    asyncio.run(run())


def latency(provider_port, seconds):
    body = json.dumps({"latency_ms": int(seconds * 1000)}).encode()
    asked = urllib.request.Request(f"http://127.0.0.1:{provider_port}/_control", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(asked, timeout=5).read()


def duplicates(folder):
    """A thousand duplicates of a running payment, and somebody who orders meanwhile. Writes docs/duplicates.md."""
    from run import Stand
    stand = Stand(folder)
    try:
        port = stand.replicas[0].port
        shop, context = Shop(port), multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        mob = context.Process(target=crowd, args=(port, theirs), daemon=True)
        mob.start()
        theirs.close()
        latency(stand.provider.port, CHARGE_S)
        alone, beside = [], []
        for _ in range(ROUNDS):
            alone += observed(context, port, shop.token, lambda: time.sleep(CHARGE_S))
            gather(shop, ours)
            beside += observed(context, port, shop.token, lambda: go(ours))
        stand.primary.sql(BUSY_CONNECTIONS)
        at_rest = stand.primary.sql(f"select most_at_work({CHARGE_S})")
        gather(shop, ours)
        counting = threading.Thread(target=lambda: at_work.append(int(stand.primary.sql(
            f"select most_at_work({CHARGE_S})"))))
        at_work = []
        counting.start()
        go(ours)
        counting.join()
        ours.send(None)
        latency(stand.provider.port, 0)
        stand.check(stand.primary, [])
        report(alone, beside, at_work[0], at_rest)
    finally:
        stand.stop()


def paying(shop):
    """A payment of a fresh order, as bytes that can be sent a thousand times."""
    status, order, _ = shop.ask("POST", "/v1/orders", {"lines": [{"sku": SKUS[0], "quantity": 1}]}, str(uuid.uuid4()))
    assert status == 201, order
    return request(f"/v1/orders/{order['id']}/payments", {"payment_method": "pm_card_ok"}, str(uuid.uuid4()), shop.token)


def gather(shop, pipe):
    """A crowd with a message in its hands."""
    pipe.send(paying(shop))
    assert pipe.poll(60) and pipe.recv() == "ready"


def go(pipe):
    """All send, all are answered."""
    pipe.send("go")
    assert pipe.poll(60), "the crowd was not answered"
    statuses, fresh, bodies = pipe.recv()
    assert statuses == [201], f"answers other than 201: {statuses}"
    assert fresh == 1 and bodies == 1, f"{fresh} first answers, {bodies} different bodies"


def observed(context, port, token, what):
    """How long somebody else's orders took while something happened."""
    stopping, (ours, theirs) = context.Event(), context.Pipe()
    other = context.Process(target=somebody_else, args=(port, token, stopping, theirs), daemon=True)
    other.start()
    time.sleep(0.5)
    began = time.monotonic()
    what()
    ended = time.monotonic()
    stopping.set()
    times, statuses = ours.recv()
    other.join()
    assert statuses == {201}, statuses
    return [(at - began, took) for at, took in times if began <= at <= ended]


def report(alone, beside, at_work, at_rest):
    def p(times, share):
        return percentile([took for _, took in times], share) * 1000
    waiting = [each for each in beside if ARRIVAL_S < each[0] < CHARGE_S]
    arriving = [each for each in beside if each[0] <= ARRIVAL_S]
    idle, ratio = p(alone, 0.99), p(beside, 0.99) / p(alone, 0.99)
    rows = [f"| {name} | {len(times):,} | {p(times, 0.5):.2f} ms | {p(times, 0.99):.2f} ms | {p(times, 0.99) / idle:.2f} |"
            for name, times in [("alone", alone), ("beside the crowd", beside)]]
    rows += [f"| of these, {name} | | | {p(times, 0.99):.2f} ms | {p(times, 0.99) / idle:.2f} |"
             for name, times in [("while it arrives", arriving), ("while it waits", waiting)]]
    page = PAGE.format(rounds=ROUNDS, crowd=f"{CROWD:,}", charge=CHARGE_S, arrival=ARRIVAL_S, processors=os.cpu_count(),
                       rows="\n".join(rows), at_work=at_work, at_rest=at_rest)
    with open(os.path.join(ROOT, "docs", "duplicates.md"), "w", encoding="utf-8") as file:
        file.write(page)
    print(page)
    assert at_work <= MOST_CONNECTIONS, f"{at_work} connections for one key"
    assert ratio <= RATIO_MAX, f"others wait {ratio:.2f} times as long"
