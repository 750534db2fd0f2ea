"""A visitor without an account who fills a cart and presses Pay twice, as a browser without scripts would."""

import html
import http.client
import re
import threading
import time
import urllib.parse


class Guest:
    """Cookies, forms, and the same form again until there is an answer."""

    def __init__(self, port, patience=90):
        self.port, self.patience, self.cookies = port, patience, {}

    def once(self, method, path, fields=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
        headers = {"Accept": "text/html", "Cookie": "; ".join(f"{n}={v}" for n, v in self.cookies.items())}
        body = None
        if fields is not None:
            body = urllib.parse.urlencode(fields)
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin",
                        "Origin": f"http://127.0.0.1:{self.port}"}
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            for name, value in answer.getheaders():
                if name.lower() == "set-cookie":
                    cookie, _, content = value.split(";")[0].partition("=")
                    self.cookies[cookie] = content
            return answer.status, answer.getheader("Location"), text
        finally:
            connection.close()

    def ask(self, method, path, fields=None):
        """Until the server is there and not busy: the form has its key in it."""
        end = time.monotonic() + self.patience
        while True:
            try:
                answer = self.once(method, path, fields)
            except (OSError, http.client.HTTPException) as error:
                answer = (0, None, repr(error))
            if answer[0] in (200, 303):
                return answer
            if answer[0] not in (0, 409, 429, 500, 502, 503) or time.monotonic() > end:
                raise AssertionError(f"{method} {path}: {answer[0]} {answer[2][:300]}")
            time.sleep(0.2)

    def form(self, page, action, **having):
        """The hidden fields of the form that leads there."""
        for form in re.findall(rf'<form[^>]*action="{re.escape(action)}"[^>]*>.*?</form>', page, re.S):
            inputs = [dict(re.findall(r'(\w+)="([^"]*)"', tag)) for tag in re.findall(r"<input[^>]*>", form)]
            fields = {each["name"]: html.unescape(each.get("value", "")) for each in inputs
                      if each.get("type") == "hidden"}
            if having.items() <= fields.items():
                return fields
        raise AssertionError(f"no form for {action} with {having}")

    def buy(self, sku, card):
        """Two presses at once; both lead to the same order, whose page is returned."""
        page = self.ask("GET", "/")[2]
        self.ask("POST", "/cart", self.form(page, "/cart", sku=sku) | {"quantity": "1"})
        fields = self.form(self.ask("GET", "/checkout")[2], "/checkout")
        fields |= {"email": "guest@example.com", "payment_method": card}
        led = []
        presses = [threading.Thread(target=lambda: led.append(self.ask("POST", "/checkout", fields)[1])) for _ in range(2)]
        for press in presses:
            press.start()
        for press in presses:
            press.join()
        assert len(led) == 2 and led[0] and len(set(led)) == 1, f"two presses of a guest led to {led}"
        return led[0], self.ask("GET", led[0].split("#")[0])[2]
