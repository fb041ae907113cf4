"""A small survey, the page in a thread, and a visitor who speaks HTTP with it, by the rules or not."""

import contextlib
import http.client
import re
import socket
import threading
import time
from urllib.parse import quote, urlencode

import numpy as np
import pandas as pd

from microagg.page.files import RequestLimits
from microagg.page.serve import Server


def survey(n=60):
    """A few people in households."""
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "person": np.arange(n) + 10_000,
            "household": np.arange(n) // 2,
            "region": rng.choice(["north", "south"], n),
            "income": rng.lognormal(8, 1, n).round(2),
            "rent": rng.lognormal(6, 1, n).round(2),
            "age": rng.integers(18, 90, n),
            "diagnosis": rng.choice(list("abcde"), n),
        }
    )


@contextlib.contextmanager
def served(*paths, temporary, limits=None):
    """A server over files and folders; ends with the block."""
    said = []
    server = Server(
        paths,
        limits=limits or RequestLimits(),
        say=lambda label, words: said.append((label, words)),
        temporary=temporary,
    )
    server.said = said
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.end()
        thread.join(600)
        assert not thread.is_alive()


class Visitor:
    """Asks the server; by default as a browser does that has entered."""

    def __init__(self, server, enter=True):
        self.server, self.port, self.home = server, server.port, server.keys.home
        self.host = f"127.0.0.1:{server.port}"
        self.cookie = None
        if enter:
            answer = self.ask("GET", server.address.partition(self.host)[2], whole=True)
            assert answer.status == 200
            self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def ask(self, method, path, body=None, headers=None, whole=False):
        """Send a request; a header of None is left out."""
        given = {"Host": self.host, "Cookie": self.cookie, "Origin": f"http://{self.host}"}
        if method == "GET":
            given["Origin"] = None
        given |= headers or {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        with contextlib.closing(connection):
            connection.putrequest(
                method,
                path if whole else self.home + path,
                skip_host=True,
                skip_accept_encoding=True,
            )
            for key, value in given.items():
                if value is not None:
                    connection.putheader(key, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            answer.body = answer.read()
            answer.text = answer.body.decode("utf-8", "replace")
            return answer

    def get(self, path, /, **headers):
        return self.ask("GET", path, headers=headers)

    def part(self, path):
        """Ask for a part of a screen as htmx does."""
        return self.ask("GET", path, headers={"HX-Request": "true"})

    def post(self, path, /, **fields):
        """Send a form as htmx does."""
        return self.ask("POST", path, urlencode(fields).encode(), {"HX-Request": "true"})

    def post_early(self, path, /, **fields):
        """Send a form as the browser does before htmx is loaded."""
        return self.ask("POST", path, urlencode(fields).encode())

    def put(self, name, body):
        return self.ask("PUT", "open/upload", body, {"X-Name": quote(name)})

    def wait(self, holds=None, seconds=600):
        """Wait until the queue is empty, or until something holds."""
        ends = time.monotonic() + seconds
        session = self.server.session
        while not (holds() if holds else not any(entry.open for entry in session.entries)):
            assert time.monotonic() < ends, [(e.task, e.state, e.news) for e in session.entries]
            time.sleep(0.02)

    def open(self, path):
        """Read a file and wait for it."""
        assert self.post("open/path", path=str(path)).status == 200
        self.post("open/pending", answer="open")  # where work stands against it
        self.wait()
        entry = self.server.session.entries[-1]
        assert entry.state == "done", entry.words

    def plan(self, **settings):
        """Change the plan by keywords, through its text; with a fast method and no proof unless told."""
        plan = self.server.session.plan.override(**{"method": "mdav", "bound": False, **settings})
        assert not self.problems(self.post("plan", what="text", text=plan.to_toml()))

    def problems(self, answer):
        """What an answer says is wrong."""
        found = re.findall(r'<p class="problem" role="alert"[^>]*>(.*?)</p>', answer.text, re.S)
        return [text for text in found if "does not answer" not in text]


def line_to(server, words):
    """A line to a server, on which some bytes were sent; with ``with`` it is closed again."""
    line = socket.create_connection(("127.0.0.1", server.port))
    line.sendall(words)
    return contextlib.closing(line)
