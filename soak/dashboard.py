"""Asks a real Prometheus everything that the dashboard and the alert rules ask, about a shop that is in use.

    scripts/soak dashboard
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

from crowd import Mixed
from run import Stand
from stand import ROOT, Redis, free_port, until

# The sweep runs at every full minute; some panels have nothing to show before.
PATIENCE_S = int(os.environ.get("SOAK_PATIENCE", "240"))
CONFIG = """
global: {{ scrape_interval: 1s, evaluation_interval: 1s }}
rule_files: [{rules}]
scrape_configs:
  - job_name: payonce
    static_configs: [{{ targets: ["127.0.0.1:{port}"] }}]
"""


class Prometheus:
    """A private one that looks at one shop every second."""

    def __init__(self, folder, target):
        self.port = free_port()
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(rules=os.path.join(ROOT, "deploy", "alerts.yml"), port=target))
        log = open(os.path.join(folder, "prometheus.log"), "ab")
        self.process = subprocess.Popen(
            [shutil.which("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={os.path.join(folder, 'tsdb')}",
             f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"], stdout=log, stderr=log)
        until("Prometheus answers", self.answers)

    def answers(self):
        try:
            return self.ask("query", query="up") is not None
        except OSError:
            return False

    def ask(self, what, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{what}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def tells(self, expression):
        """Whether there is anything but "not a number"."""
        return any(sample["value"][1] != "NaN" for sample in self.ask("query", query=expression)["result"])

    def knows(self, metric):
        return bool(self.ask("query", query=f"count({metric})")["result"])

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def panels():
    """Title and query of everything that the dashboard shows."""
    with open(os.path.join(ROOT, "deploy", "dashboard.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    return [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]


def rules(prometheus):
    return [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]


def look(prometheus):
    """Until every query has told something; then what every alert refers to."""
    silent = panels()
    number, end = len(silent), time.monotonic() + PATIENCE_S
    while silent and time.monotonic() < end:
        time.sleep(2)
        silent = [each for each in silent if not prometheus.tells(each[1])]
    assert not silent, f"{len(silent)} of {number} queries tell nothing: {silent}"
    alerts = rules(prometheus)
    wrong = [(rule["name"], rule.get("lastError")) for rule in alerts if rule["health"] != "ok"]
    assert alerts and not wrong, f"alerts that cannot be evaluated: {wrong}"
    asked = {name for rule in alerts for name in re.findall(r"payonce_\w+", rule["query"])}
    unknown = sorted(name for name in asked if not prometheus.knows(name))
    assert not unknown, f"alerts ask for what is not there: {unknown}"
    firing = sorted(rule["name"] for rule in alerts if rule["state"] == "firing")
    print(f"dashboard: {number} queries of the dashboard told something, {len(alerts)} alert rules were evaluated and know "
          f"their {len(asked)} metrics; firing: {', '.join(firing) or 'none'}")


def dashboard(folder):
    """Scrapes a shop with all kinds of traffic."""
    redis = Redis(folder).start()
    stand = Stand(folder, flags=[f"--redis-url={redis.url()}", "--sweep-cron=* * * * *"])
    prometheus = Prometheus(folder, stand.replicas[0].port)
    try:
        mixed = Mixed(stand.replicas[0].port)
        def watch():
            try:
                look(prometheus)
            finally:
                mixed.stopping.set()
        mixed.run([mixed.somebody] * 8 + [mixed.repeat], watch)
        assert not mixed.broken, mixed.broken[:3]
        stand.check(stand.primary, [])
    finally:
        prometheus.stop()
        stand.stop()
        redis.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="payonce-dashboard-") as directory:
        dashboard(directory)
