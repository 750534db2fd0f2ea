"""What a running process holds: memory, file handles, threads, connections, keys under way."""

import os
import re
import statistics
import threading
import time

EVERY_S = 2.0


def series(page, name):
    """The value of one series of a page of metrics."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", page or "", re.M)
    return float(found.group(1)) if found else None


class Watch:
    """Looks at a process and its connections every two seconds."""

    def __init__(self, process, database):
        self.process, self.database = process, database
        self.seen, self.stopping = [], threading.Event()
        self.thread = threading.Thread(target=self.look_on, daemon=True)

    def __enter__(self):
        self.started = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(30)

    def look_on(self):
        while not self.stopping.wait(EVERY_S):
            try:
                self.seen.append((time.monotonic() - self.started, self.look()))
            except Exception:  # the database may be away, and that is what somebody else measures
                continue

    def look(self):
        pid = self.process.process.pid
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            text = status.read()
        page = self.process.get("/metrics")
        return {
            "memory": int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) / 1024,
            "threads": int(re.search(r"Threads:\s+(\d+)", text).group(1)),
            "files": len(os.listdir(f"/proc/{pid}/fd")),
            "connections": self.connections("true"),
            "in transaction": self.connections("state like 'idle in transaction%'"),
            "flights": series(page, "payonce_flights"),
            "pool in use": series(page, 'payonce_pool_connections{state="in_use"}'),
        }

    def connections(self, which):
        return int(self.database.sql(
            f"select count(*) from pg_stat_activity where application_name = 'payonce' and {which}", "postgres"))

    def thirds(self, what):
        """Mean of the first, second and last third, and the most there was."""
        end = self.seen[-1][0]
        parts = [[], [], []]
        for at, seen in self.seen:
            if seen[what] is not None:
                parts[min(2, int(3 * at / end))].append(seen[what])
        return [statistics.fmean(part) for part in parts], max(max(part) for part in parts)
