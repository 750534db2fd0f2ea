"""Measures Payonce: interleaved rounds, medians and spread, ratios within one run.

Everything runs privately on this machine: Postgres with its defaults (fsync and synchronous_commit
on), Redis, the release build of the server, pgbench and wrk as processes of their own.
"""

import argparse
import glob
import json
import os
import platform
import pwd
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, "bench")
SECRET = "5a" * 32
PRODUCTS = 500
REPLAY_KEYS = 2000


def postgres_bin():
    if os.environ.get("PG_BIN"):
        return os.environ["PG_BIN"]
    found = glob.glob("/usr/lib/postgresql/*/bin") + glob.glob("/opt/homebrew/opt/postgresql@*/bin")
    found = [path for path in found if os.path.exists(os.path.join(path, "initdb"))]
    if found:
        return max(found, key=lambda path: int(re.search(r"(\d+)", path).group(1)))
    return os.path.dirname(shutil.which("initdb"))


def output_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{os.path.basename(command[0])} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Postgres:
    """A private server with default settings. It refuses root, so root gives it another user."""

    def __init__(self, folder):
        self.bin, self.port = postgres_bin(), free_port()
        self.data, self.folder = os.path.join(folder, "postgres"), folder
        os.chmod(folder, 0o755)
        self.user = "postgres" if os.geteuid() == 0 else None
        os.mkdir(self.data)
        if self.user:
            shutil.chown(self.data, self.user)
        self.run("initdb", "-D", self.data, "-U", "payonce", "-A", "trust", "--locale=C", "-E", "UTF8")
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200"
        self.run("pg_ctl", "-D", self.data, "-w", "-o", options, "-l", os.path.join(self.data, "log"), "start")
        self.url = f"postgres://payonce@127.0.0.1:{self.port}/payonce"
        self.sql("create database payonce", database="postgres")

    def run(self, name, *arguments):
        user = pwd.getpwnam(self.user) if self.user else None
        command = [os.path.join(self.bin, name), *arguments]
        keywords = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **keywords)

    def sql(self, text, database="payonce"):
        command = [os.path.join(self.bin, "psql"), "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
                   "-p", str(self.port), "-U", "payonce", "-d", database, "-c", text]
        return output_of(command).strip()

    def textbook(self, clients, seconds, run):
        account = self.sql("select id from account where role = 'shopper' limit 1")
        first = int(self.sql("select min(id) from product where sku like 'bench-%'")) - 1
        # As long as those of an order of one line.
        headers, body = "\\x" + (b"x" * 126).hex(), "\\x" + (b"x" * 400).hex()
        with open(os.path.join(BENCH, "textbook.sql"), encoding="utf-8") as source:
            script = source.read()
        script = script.replace(":account", f"'{account}'").replace(":headers", f"'{headers}'")
        script = script.replace(":body", f"'{body}'").replace(":resource", f"'/v1/orders/ord_{'0' * 32}'").replace(":first_product", str(first))
        path = os.path.join(self.folder, "textbook.sql")
        with open(path, "w", encoding="utf-8") as target:
            target.write(script)
        command = [os.path.join(self.bin, "pgbench"), "-n", "-M", "prepared", "-c", str(clients), "-j", "2",
                   "-T", str(seconds), "-D", "n=0", "-D", f"run={run}", "-f", path,
                   "-h", "127.0.0.1", "-p", str(self.port), "-U", "payonce", "payonce"]
        output = output_of(command)
        rate = float(re.search(r"tps = ([\d.]+)", output).group(1))
        print(f"textbook {clients} clients: {rate:.0f}/s", file=sys.stderr)
        return rate

    def stop(self):
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")


class Server:
    """The release build against the private parts."""

    def __init__(self, binary, database, redis, forgetful=False, connections=32):
        self.port, self.started = free_port(), time.monotonic()
        # Nobody pays for these orders: a day of reservation keeps those of one round from expiring in another.
        environment = dict(os.environ, DATABASE_URL=database, REDIS_URL=redis, PAYONCE_SECRET=SECRET, RUST_LOG="warn",
                           PAYONCE_RESERVATION_S="86400")
        if forgetful:
            environment["PAYONCE_BENCH_FORGETFUL"] = "1"
        arguments = ["--port", str(self.port), "--provider-port", "0", "--demo", "--db-connections", str(connections)]
        self.process = subprocess.Popen([binary, *arguments], env=environment, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("Payonce is at"):
                break
        else:
            raise SystemExit("the server did not start")
        self.url = f"http://127.0.0.1:{self.port}"
        while True:
            try:
                urllib.request.urlopen(self.url + "/readyz").read()
                break
            except OSError:
                time.sleep(0.005)
        self.ready_s = time.monotonic() - self.started
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        request = urllib.request.Request(
            self.url + "/v1/sessions", headers={"content-type": "application/json"},
            data=json.dumps({"email": "shopper@payonce.test", "password": "click-twice-pay-once"}).encode())
        self.token = json.load(urllib.request.urlopen(request))["token"]

    def load(self, script, clients, seconds, run, path="/v1/orders", keys=0):
        target = self.url + ("/healthz" if script == "health" else "")
        command = ["wrk", "-t2" if clients > 1 else "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s",
                   "-s", os.path.join(BENCH, script + ".lua"), target, "--", path, self.token, str(run), str(keys)]
        output = output_of(command)
        rate, p99_ms, errors = re.search(r"RESULT ([\d.]+) ([\d.]+) (\d+)", output).groups()
        if int(errors):
            raise SystemExit(f"{errors} failed requests in {script} {path}:\n{output}")
        print(f"{script} {path} {clients} clients: {float(rate):.0f}/s, p99 {p99_ms} ms", file=sys.stderr)
        return float(rate), float(p99_ms)

    def status(self, field):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return int(re.search(rf"{field}:\s+(\d+)", status.read()).group(1)) / 1024

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=40)


def duplicates(server, run):
    """1000 copies of one payment that takes two seconds at the provider."""
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}

    def post(path, key, body):
        request = urllib.request.Request(server.url + path, data=json.dumps(body).encode(),
                                         headers={**headers, "idempotency-key": key})
        return urllib.request.urlopen(request, timeout=60).read()

    order = json.loads(post("/v1/orders", f"dup-{run}", {"lines": [{"sku": "bench-1", "quantity": 1}]}))["id"]
    body = json.dumps({"payment_method": "pm_card_slow"})
    request = (f"POST /v1/orders/{order}/payments HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {server.token}\r\n"
               f"Content-Type: application/json\r\nIdempotency-Key: dup-{run}-pay\r\n"
               f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}").encode()
    sockets = []
    for _ in range(1000):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(request)
        sockets.append(connection)
    return sockets


def answered(sockets):
    """All answers; they must be one and the same."""
    bodies = set()
    for connection in sockets:
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        connection.close()
        head, body = answer.split(b"\r\n\r\n", 1)
        if b" 201 " not in head.split(b"\r\n")[0]:
            raise SystemExit(f"a duplicate got {head[:100]!r}")
        bodies.add(body)
    if len(bodies) != 1:
        raise SystemExit("duplicates got different answers")


class Figures:
    """Named series of rounds."""

    def __init__(self):
        self.rounds = {}

    def add(self, name, value):
        self.rounds.setdefault(name, []).append(value)

    def summary(self):
        return {name: {"median": round(statistics.median(values), 4), "min": round(min(values), 4),
                       "max": round(max(values), 4), "rounds": len(values)}
                for name, values in self.rounds.items()}


def measure(options, figures):
    folder = tempfile.mkdtemp(prefix="payonce-bench-")
    binary = os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"), "release", "payonce")
    redis_port = free_port()
    redis = subprocess.Popen(["redis-server", "--port", str(redis_port), "--bind", "127.0.0.1", "--save", "",
                              "--dir", folder], stdout=subprocess.DEVNULL)
    redis_url = f"redis://127.0.0.1:{redis_port}"
    postgres, servers = None, {}
    try:
        postgres = Postgres(folder)
        Server(binary, postgres.url, redis_url).stop()
        seed(postgres)
        # Each replays out of what it has: memory, Redis, or only Postgres.
        servers["memory"] = Server(binary, postgres.url, redis_url)
        servers["redis"] = Server(binary, postgres.url, redis_url, forgetful=True)
        servers["postgres"] = Server(binary, postgres.url, "", forgetful=True)
        figures.add("rss_idle_mb", servers["memory"].status("VmRSS"))
        rounds(options, figures, postgres, servers)
        for server in servers.values():
            server.stop()
        servers.clear()
        for _ in range(options.rounds):
            server = Server(binary, postgres.url, redis_url)
            figures.add("ready_s", server.ready_s)
            server.stop()
        many_records(options, figures, postgres, binary, redis_url)
        figures.add("binary_mb", os.path.getsize(binary) / 1e6)
    finally:
        for server in servers.values():
            server.process.kill()
        redis.terminate()
        redis.wait()
        if postgres:
            postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def seed(postgres):
    postgres.sql(f"""insert into product (sku, name, description, price, currency, initial_stock, stock)
        select 'bench-' || n, 'Bench product', 'For measurements.', 2400, 'USD', 1000000000, 1000000000
        from generate_series(1, {PRODUCTS}) n""")


def rounds(options, figures, postgres, servers):
    main, run = servers["memory"], int(time.time())
    base = run
    for name, server in servers.items():
        # Fills the record, then (on the first replay) Redis.
        for _ in range(2):
            server.load("order", 16, 3, f"{base}-{name}", keys=REPLAY_KEYS)
    for number in range(options.rounds):
        for clients in options.clients:
            run += 1
            guarded, p99_ms = main.load("order", clients, options.seconds, run)
            textbook = postgres.textbook(clients, options.seconds, run)
            unguarded, _ = main.load("order", clients, options.seconds, run, path="/bench/orders")
            checkout, _ = main.load("checkout", clients, options.seconds, run)
            figures.add(f"guarded_order_per_s_{clients}", guarded)
            figures.add(f"guarded_order_p99_ms_{clients}", p99_ms)
            figures.add(f"textbook_per_s_{clients}", textbook)
            figures.add(f"checkout_per_s_{clients}", checkout)
            figures.add(f"guarded_order_vs_pgbench_{clients}", guarded / textbook)
            figures.add(f"guarded_vs_unguarded_{clients}", guarded / unguarded)
            for name, server in servers.items():
                health, _ = server.load("health", clients, options.seconds, run)
                replay, _ = server.load("order", clients, options.seconds, f"{base}-{name}", keys=REPLAY_KEYS)
                figures.add(f"replay_{name}_vs_healthz_{clients}", replay / health)
        run += 1
        _, idle_p99_ms = main.load("order", 16, options.seconds, run)
        sockets = duplicates(main, run)
        _, busy_p99_ms = main.load("order", 16, 1, f"{run}-d")
        answered(sockets)
        figures.add("duplicates_p99_vs_idle", busy_p99_ms / idle_p99_ms)
        cpu_s = main.cpu_s()
        rate, _ = main.load("order", 16, options.seconds, f"{run}-c")
        figures.add("cpu_us_per_order", (main.cpu_s() - cpu_s) / (rate * options.seconds) * 1e6)
        figures.add("rss_load_mb", main.status("VmHWM"))


def many_records(options, figures, postgres, binary, redis_url):
    """The same load on a table of many finished records and on an almost empty one."""
    postgres.sql("delete from idempotency_record")
    postgres.sql("vacuum full idempotency_record")
    name = "1m" if options.records == 1_000_000 else f"{options.records // 1_000_000}m"
    postgres.sql("create database many template payonce", database="postgres")
    postgres.sql(f"""insert into idempotency_record (scope, key, fingerprint, marks, operation, state, created_at,
            finished_at, expires_at, status, headers, body)
        select '\\x00000000000000000000000000000002', gen_random_uuid()::text, sha256(n::text::bytea), '', 'bench',
            'completed', t, t, t + interval '1 day', 201, '\\x00', convert_to(repeat('x', 400), 'UTF8')
        from generate_series(1, {options.records}) n, clock_timestamp() t""", database="many")
    postgres.sql("vacuum analyze idempotency_record", database="many")
    postgres.sql("checkpoint", database="many")
    empty = Server(binary, postgres.url, redis_url)
    many = Server(binary, postgres.url.removesuffix("payonce") + "many", redis_url)
    try:
        for number in range(options.rounds):
            run = f"m{int(time.time())}-{number}"
            empty_rate, empty_p99_ms = empty.load("order", 16, options.seconds, run)
            many_rate, many_p99_ms = many.load("order", 16, options.seconds, run)
            figures.add(f"records_{name}_vs_empty_16", many_rate / empty_rate)
            figures.add(f"records_{name}_p99_vs_empty_16", many_p99_ms / empty_p99_ms)
    finally:
        many.stop()
        empty.stop()


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = re.search(r"model name\s*:\s*(.+)", info.read())
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    version = subprocess.run([os.path.join(postgres_bin(), "postgres"), "--version"],
                             capture_output=True, text=True, check=True).stdout.strip()
    return (f"{model.group(1).strip() if model else platform.machine()}, {os.cpu_count()} processors, "
            f"{memory_gb:.0f} GB, Linux {platform.release()}, {version}")


def main():
    parser = argparse.ArgumentParser(description="Measures Payonce in interleaved rounds.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, under two minutes")
    parser.add_argument("--full", action="store_true", help="10 million records in place of 1 million")
    parser.add_argument("--json", metavar="FILE", help="write the figures here")
    parser.add_argument("--rounds", type=int, help="rounds of everything")
    options = parser.parse_args()
    options.seconds = 1 if options.quick else 5
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.clients = [16, 64] if options.quick else [1, 16, 64]
    options.records = 10_000_000 if options.full else 1_000_000
    figures = Figures()
    measure(options, figures)
    summary = figures.summary()
    print(f"\n{machine()}\n")
    print("| figure | median | min | max | rounds |\n|---|---:|---:|---:|---:|")
    for name, row in sorted(summary.items()):
        print(f"| {name} | {row['median']:g} | {row['min']:g} | {row['max']:g} | {row['rounds']} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as target:
            json.dump(summary, target, indent=2, sort_keys=True)
            target.write("\n")


if __name__ == "__main__":
    main()
