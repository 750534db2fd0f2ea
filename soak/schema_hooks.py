"""What a schema cannot say about our requests, and the check that needs it."""

import json
import os
import random
import re
import urllib.request
import uuid

import schemathesis
from hypothesis import strategies as st
from schemathesis.generation.meta import CoverageScenario

# The description's own example: as it stands, every request of an operation would have one key.
EXAMPLE_KEY = "8e03978e-40d5-43dd-bc93-6894a57f9324"
# Rules about the state of things, not about the shape of a request.
ABOUT_STATE = {"idempotency_key_reused", "refund_too_large"}
# An amount that is not the order's; goods that go back with the remainder only; a product that is not
# there or more than 99 of it after lines were added up; a movement of nothing; a cursor that is not
# ours; an address that is no public one; an event named twice; a card the provider does not know.
ABOUT_STATE_AT = re.compile(
    r"/amount(/.*)?|/restock|/lines/\d+/(sku|quantity)|/lines|/delta|/cursor|/url|/events(/.*)?|/payment_method|/expected_total"
)


# Addresses as people have them; what else RFC 5322 allows is not what a schema fuzzer should find out.
schemathesis.openapi.format("email", st.from_regex(r"[a-z0-9]{1,12}(\.[a-z0-9]{1,12})?@[a-z0-9]{1,12}\.(com|test)", fullmatch=True))


@schemathesis.hook
def before_call(context, case, kwargs):
    if leaves_out_the_token(case):
        # The one that the whole run carries would be sent all the same.
        case.headers.pop("Authorization", None)
        kwargs.get("headers", {}).pop("Authorization", None)
        return
    headers = case.headers or {}
    if headers.get("Idempotency-Key") == EXAMPLE_KEY:
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
    if case.meta is not None and case.meta.generation.mode.is_positive and isinstance(case.body, dict):
        make_possible(case)
    if case.method.upper() == "DELETE" and case.path == "/v1/sessions/current" and "Authorization" in headers:
        # This one costs a token: not the one that the rest of the run needs.
        case.headers["Authorization"] = f"Bearer {fresh_token()}"


def leaves_out_the_token(case):
    data = case.meta.phase.data if case.meta is not None else None
    parameter = getattr(data, "parameter", None) or ""
    return parameter.lower() == "authorization" and getattr(data, "scenario", None) == CoverageScenario.MISSING_PARAMETER


def make_possible(case):
    """Words that mean something here, so that there are orders to pay and payments to refund."""
    chance = random.Random(str(case.body))
    if case.path == "/v1/orders" and chance.random() < 0.8:
        for line in case.body.get("lines", []):
            line["sku"] = chance.choice(["enamel-mug", "order-book"])
        case.body["lines"] = case.body["lines"][:2]
        case.body.pop("expected_total", None)
    elif case.path.endswith("/payments") and chance.random() < 0.8:
        case.body["payment_method"] = chance.choice(["pm_card_ok", "pm_card_ok", "pm_card_declined", "pm_card_down"])
        case.body.pop("amount", None)
    elif case.path.endswith("/refunds") and chance.random() < 0.5:
        case.body["amount"] = {"amount": chance.randint(1, 50), "currency": "USD"}
        case.body.pop("restock", None)


def fresh_token():
    body = json.dumps({"email": "shopper@payonce.test", "password": "click-twice-pay-once"}).encode()
    url = f"{os.environ['PAYONCE_URL']}/v1/sessions"
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)["token"]


@schemathesis.check
def valid_input_is_not_malformed(context, response, case):
    """A request that the schema allows is not refused for its shape."""
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code not in (400, 413, 415, 422):
        return
    problem = json.loads(response.content)
    if problem["code"] in ABOUT_STATE or about_state(problem):
        return
    raise AssertionError(f"refused as {problem['code']}: {problem.get('detail')} {problem.get('errors')}")


def about_state(problem):
    """Right in form, and yet not possible: the table below says what."""
    pointers = [error["pointer"] for error in problem.get("errors", [])]
    known = problem["code"] == "validation_failed" and bool(pointers)
    return known and all(ABOUT_STATE_AT.fullmatch(pointer) for pointer in pointers)
