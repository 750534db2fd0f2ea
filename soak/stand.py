"""What a soak stands on: private servers on this machine, each stopped by its own process."""

import glob
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.path.abspath(os.environ.get("PAYONCE") or os.path.join(ROOT, "target", "release", "payonce"))
SECRET = "5a" * 32
WEBHOOK_SECRET = "whsec_" + "c29haw" * 8


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what, holds, seconds=60):
    """Asks again until it holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return
        time.sleep(0.02)
    raise SystemExit(f"did not happen within {seconds} s: {what}")


def postgres_bin():
    if os.environ.get("PG_BIN"):
        return os.environ["PG_BIN"]
    found = [p for p in glob.glob("/usr/lib/postgresql/*/bin") if os.path.exists(p + "/initdb")]
    if found:
        return max(found, key=lambda path: int(re.search(r"(\d+)", path).group(1)))
    return os.path.dirname(shutil.which("initdb"))


class Postgres:
    """A private server. It refuses root, so root gives it another user."""

    def __init__(self, folder, name, standby_of=None):
        self.bin, self.port, self.name = postgres_bin(), free_port(), name
        self.data = os.path.join(folder, name)
        os.chmod(folder, 0o755)
        user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self.as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        os.mkdir(self.data, 0o700)
        if user:
            shutil.chown(self.data, user.pw_uid, user.pw_gid)
        self.server = None
        if standby_of:
            self.run("pg_basebackup", "-h", "127.0.0.1", "-p", str(standby_of.port), "-U", "payonce",
                     "-D", self.data, "-R", "-X", "stream", "-c", "fast")
        else:
            self.run("initdb", "-D", self.data, "-U", "payonce", "-A", "trust", "--locale=C", "-E", "UTF8")

    def run(self, name, *arguments, output=subprocess.DEVNULL):
        command = [os.path.join(self.bin, name), *arguments]
        subprocess.run(command, check=True, stdout=output, stderr=output, cwd="/", **self.as_user)

    def start(self, *settings):
        options = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200", *settings]
        command = [os.path.join(self.bin, "postgres"), "-D", self.data, "-p", str(self.port)]
        for option in options:
            command += ["-c", option]
        log = open(self.data + ".log", "ab")
        self.server = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", start_new_session=True, **self.as_user)
        until(f"{self.name} answers", self.answers)
        return self

    def answers(self):
        try:
            return self.sql("select 1", "postgres") == "1"
        except subprocess.CalledProcessError:
            return False

    def kill(self):
        """The server and all its children die at once; their connections are reset."""
        self.signal(signal.SIGKILL)
        self.server.wait()

    def freeze(self):
        """As a machine that hangs or is cut off: connections stay, and nobody says a word any more."""
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.server.pid)], capture_output=True, text=True)
        for pid in [self.server.pid, *map(int, children.stdout.split())]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def stop(self):
        if self.server and self.server.poll() is None:
            self.server.send_signal(signal.SIGINT)
            self.server.wait(60)

    def sql(self, text, database="payonce"):
        command = [os.path.join(self.bin, "psql"), "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
                   "-p", str(self.port), "-U", "payonce", "-d", database, "-c", text]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def url(self, database="payonce"):
        return f"postgres://payonce@127.0.0.1:{self.port}/{database}"


class Redis:
    """A private cache, small and forgetful, as it is meant to be run."""

    def __init__(self, folder, memory="2mb"):
        self.port, self.memory, self.server = free_port(), memory, None
        self.log = os.path.join(folder, "redis.log")

    def start(self):
        command = [shutil.which("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                   "--appendonly", "no", "--maxmemory", self.memory, "--maxmemory-policy", "allkeys-lru"]
        log = open(self.log, "ab")
        self.server = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", start_new_session=True)
        until("Redis answers", lambda: self.ask("PING") == "PONG")
        return self

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def freeze(self, seconds):
        """It takes connections and says nothing."""
        self.server.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.server.send_signal(signal.SIGCONT)

    def stop(self):
        if self.server and self.server.poll() is None:
            self.server.terminate()
            self.server.wait(30)


class Payonce:
    """One process of the program."""

    def __init__(self, folder, command, url, port=0, *flags):
        self.port = port or free_port()
        name = "--provider-port" if command == "provider" else "--port"
        self.arguments = [BINARY, command, f"--database-url={url}", f"{name}={self.port}", f"--secret={SECRET}",
                          f"--provider-webhook-secret={WEBHOOK_SECRET}", "--log=warn", *flags]
        self.log = os.path.join(folder, f"{command}-{self.port}.log")
        self.process = None

    def start(self):
        return self.launch().ready()

    def launch(self):
        log = open(self.log, "ab")
        self.process = subprocess.Popen(self.arguments, stdout=log, stderr=log, start_new_session=True)
        return self

    def ready(self):
        path = "/charges?limit=1" if "provider" in self.arguments else "/readyz"
        until(f"{self.arguments[1]} answers, see {self.log}", lambda: self.get(path), 120)
        return self

    def get(self, path):
        if self.process.poll() is not None:
            raise SystemExit(open(self.log).read())
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


class Haproxy:
    """The proxy of deploy/haproxy.cfg in front of two ports."""

    def __init__(self, folder, ports):
        self.port = free_port()
        with open(os.path.join(ROOT, "deploy", "haproxy.cfg"), encoding="utf-8") as source:
            text = source.read()
        text = text.replace("bind :8080", f"bind 127.0.0.1:{self.port}")
        for name, port in zip(("one", "two"), ports):
            text = text.replace(f"{name}:8080", f"127.0.0.1:{port}")
        path = os.path.join(folder, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        program = shutil.which("haproxy") or "/usr/sbin/haproxy"
        log = open(os.path.join(folder, "haproxy.log"), "ab")
        self.process = subprocess.Popen([program, "-db", "-f", path], stdout=log, stderr=log)
        until("the proxy finds a replica", self.answers)

    def answers(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
