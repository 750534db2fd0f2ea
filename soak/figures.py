"""Keeps the figures of the searches in docs/attack.json and writes docs/attack.md from them.

    some-search | python3 soak/figures.py TOOL
"""

import datetime
import json
import os
import re
import sys

from stand import ROOT

FIGURES = os.path.join(ROOT, "docs", "attack.json")
PAGE = os.path.join(ROOT, "docs", "attack.md")


def model(text):
    whole = re.search(r"whole protocol with (\d+) faults: (\d+) states, (\d+) of them different, longest history (\d+)", text)
    broken = len(re.findall(r'^\w+ breaks "', text, re.M))
    faults, states, different, longest = map(int, whole.groups())
    return (f"{states:,} states, {different:,} of them different, histories of up to {longest} steps with {faults} faults; "
            f"{broken} planted defects, each found")


def histories(text):
    count, steps = re.search(r"(\d+) histories of (\d+) steps", text).groups()
    return f"{count} histories, {steps} steps"


def fuzz(text):
    passed = sum(map(int, re.findall(r"test result: ok\. (\d+) passed", text)))
    assert "FAILED" not in text
    return f"{passed} tests passed, {int(os.environ['PROPTEST_CASES']):,} documents or values for each law among them"


def mutants(text):
    found = re.findall(r"(\d+) mutants tested.*?: (.*)", text)
    count, ends = found[-1]
    return f"{count} mutants: {ends}" + ("" if "missed" in ends else ", none missed")


def schema(text):
    cases = re.search(r"^\s*Test cases:\s*$\s*(.*)", text, re.M) or re.search(r"(\d[\d,]* generated.*)", text)
    operations = re.search(r"Selected: (\S+)", text)
    return f"{operations.group(1)} operations; {cases.group(1).strip()}"


def load(text):
    return re.search(r"^load: (.*)", text, re.M).group(1)


TOOLS = {
    "schema": (schema, "Schemathesis 4.32.5 against a running demo, all checks, chains of requests"),
    "fuzz": (fuzz, "Parsers, codecs and money against second implementations"),
    "model": (model, "Every interleaving of the protocol (`model/`)"),
    "mutants": (mutants, "Changed lines in `domain` and `idempotency` that a test notices"),
    "histories": (histories, "Random histories on real processes, with kills and every cache trouble"),
    "load": (load, "Mixed traffic with 5 % duplicates, 1 % resets, restarts in the middle; what is left over"),
}


def page(figures):
    rows = []
    for name, (_, what) in TOOLS.items():
        figure = figures.get(name, {"figure": "not run yet", "day": ""})
        rows.append(f"| `scripts/soak {name}` | {what} | {figure['figure']} | {figure['day']} |")
    with open(os.path.join(ROOT, "soak", "findings.md"), encoding="utf-8") as findings:
        below = findings.read()
    return "\n".join([
        "# What the searches for faults found", "",
        "Written by `soak/figures.py` from the last run of each search; the part below the table comes from",
        "`soak/findings.md`. `fuzz`, `model` and `histories` also run, smaller, with the tests.", "",
        "| search | what it tries | last figure | on |", "|---|---|---|---|", *rows, "", below.strip(), ""])


def main():
    name = sys.argv[1]
    figures = {}
    if os.path.exists(FIGURES):
        with open(FIGURES, encoding="utf-8") as file:
            figures = json.load(file)
    if name != "page":
        text = sys.stdin.read()
        sys.stdout.write(text)
        figures[name] = {"figure": TOOLS[name][0](text), "day": datetime.date.today().isoformat()}
    with open(FIGURES, "w", encoding="utf-8") as file:
        file.write(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page(figures))


if __name__ == "__main__":
    main()
