"""Schemathesis against a running demo: every operation of the API description, with every check.

    scripts/soak schema [SECONDS]

Valid and invalid requests by the schema, the boundaries of every value, and chains of requests in
which answers feed the next one (an order is paid, the payment refunded). A 5xx, a status or a
document that is not described, invalid input that is taken and valid input that is refused as
malformed all fail the run. `schema_hooks.py` says what a schema cannot.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

from stand import BINARY, ROOT, until

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 240


class Demo:
    """The program as the README starts it, on free ports and in a folder of its own."""

    def __init__(self, folder):
        self.log = os.path.join(folder, "log")
        command = [BINARY, "serve", "--demo", "--port=0", "--provider-port=0", "--log=warn",
                   f"--data-dir={os.path.join(folder, 'data')}"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.url = None
        until(f"the demo answers, see {self.log}", self.answers, 120)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def answers(self):
        if self.process.poll() is not None:
            raise SystemExit(self.said())
        found = re.search(r"^Payonce is at (\S+)", self.said(), re.M)
        self.url = found and found.group(1)
        return bool(found)

    def token(self, email):
        body = json.dumps({"email": email, "password": "click-twice-pay-once"}).encode()
        request = urllib.request.Request(f"{self.url}/v1/sessions", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)["token"]

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def run(folder, seconds):
    demo = Demo(folder)
    report = os.path.join(folder, "report.json")
    try:
        command = [
            os.environ["SCHEMATHESIS"], f"--config-file={os.path.join(HERE, 'schemathesis.toml')}", "run",
            os.path.join(ROOT, "openapi", "openapi.json"), f"--url={demo.url}", "--checks=all",
            "--exclude-checks=positive_data_acceptance,object_level_authorization",
            f"--header=Authorization:Bearer {demo.token('merchant@payonce.test')}",
            "--phases=examples,coverage,fuzzing,stateful", "--continue-on-failure", "--workers=1",
            f"--max-time={seconds}", "--warnings=off", "--report=json", f"--report-json-path={report}",
            f"--seed={os.environ.get('SEED', '1')}", "--suppress-health-check=all",
        ]
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": "schema_hooks", "PYTHONPATH": HERE, "PAYONCE_URL": demo.url}
        code = subprocess.run(command, env=environment, cwd=folder, check=False).returncode
        panics = [line for line in demo.said().splitlines() if "panicked" in line or "request failed" in line]
        assert not panics, panics[:5]
        return code
    finally:
        demo.stop()


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    with tempfile.TemporaryDirectory(prefix="payonce-schema-") as folder:
        os.chmod(folder, 0o755)
        raise SystemExit(run(folder, seconds))


if __name__ == "__main__":
    main()
