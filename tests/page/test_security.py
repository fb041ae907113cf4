"""Attacks on the page from elsewhere: each is refused, and logged without anything of the request."""

import contextlib
import http.client
import logging
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from microagg.page.files import RequestLimits
from microagg.page.serve import Server, _open_browser, serve
from visitor import Visitor, line_to, served

CANARY = "canary-7391"


def refused(answer, caplog):
    """Whether it was refused and logged, with nothing of the request in the log."""
    said = [record.getMessage() for record in caplog.records if record.name == "microagg.page"]
    return answer.status == 403 and len(said) == 1 and not any(CANARY in words for words in said)


def test_only_loopback_listens(server):
    found = {one.getsockname()[0] for one in server.sockets}
    assert "127.0.0.1" in found
    assert found <= {"127.0.0.1", "::1"}
    # From the machine's own other addresses nobody answers.
    with contextlib.closing(socket.socket()) as other:
        other.settimeout(2)
        assert other.connect_ex(("127.0.0.2", server.port)) != 0


def test_without_token_nothing(server, caplog):
    stranger = Visitor(server, enter=False)
    for path in ("/", "/" + CANARY, server.keys.home, server.keys.home + "static/page.js"):
        caplog.clear()
        answer = stranger.ask("GET", path, whole=True)
        assert refused(answer, caplog)
        assert server.keys.home.strip("/") not in answer.text


@pytest.mark.parametrize(
    ("way", "cookie"),
    [
        *(
            ("open", cookie)
            for cookie in ("microagg=", f"microagg={CANARY}", "microagg=é", "other=1")
        ),
        *((f"/enter?token={token}", None) for token in ("", CANARY, "%C3%A9", "%00", "%FF")),
        ("/0123456789abcdef/open", "its own"),  # elsewhere than in its folder
    ],
)
def test_a_wrong_cookie_token_or_place(server, caplog, way, cookie):
    stranger = Visitor(server, enter=cookie == "its own")
    caplog.clear()
    given = {} if cookie in (None, "its own") else {"Cookie": cookie.encode("latin-1")}
    assert refused(stranger.ask("GET", way, headers=given, whole=way.startswith("/")), caplog)


def test_a_token_works_once(server, caplog):
    stranger = Visitor(server, enter=False)
    way = server.address.partition(stranger.host)[2]
    assert stranger.ask("GET", way, whole=True).status == 200
    caplog.clear()
    again = stranger.ask("GET", way, whole=True)
    assert refused(again, caplog)
    assert again.headers["set-cookie"] is None
    assert server.said[-1][1].endswith(server.address)  # another one is told to who started it


@pytest.mark.parametrize(
    "headers", [{"Sec-Purpose": "prefetch"}, {"Sec-Purpose": "prefetch;prerender"}]
)
def test_what_a_browser_fetches_ahead_does_not_use_the_token_up(server, headers):
    stranger = Visitor(server, enter=False)
    way = server.address.partition(stranger.host)[2]
    assert stranger.ask("GET", way, headers=headers, whole=True).status == 403
    assert stranger.ask("GET", way, whole=True).status == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "evil.example:{port}", "", None])
def test_another_host_is_refused_whatever_else_is_right(server, caplog, host):
    """DNS rebinding: the browser believes to talk to evil.example, which now leads to this machine."""
    visitor = Visitor(server)
    caplog.clear()
    given = None if host is None else host.format(port=server.port)
    answer = visitor.get("open", Host=given)
    # A request without any Host is refused by the server below.
    assert answer.status in (400, 403) if host is None else refused(answer, caplog)


@pytest.mark.parametrize("host", ["localhost", "[::1]"])
def test_other_names_of_this_machine_will_do(server, host):
    assert Visitor(server).get("open", Host=f"{host}:{server.port}").status == 200


ORIGINS = ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", None]


@pytest.mark.parametrize("origin", ORIGINS)
def test_another_origin_changes_nothing(server, caplog, origin):
    visitor = Visitor(server)
    caplog.clear()
    before = server.session.entries
    given = None if origin is None else origin.format(port=server.port)
    answer = visitor.ask("POST", "open/path", b"path=/", {"Origin": given})
    assert refused(answer, caplog)
    assert server.session.entries is before


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_site_or_port_makes_a_browser_ask(server, caplog, site):
    visitor = Visitor(server)
    caplog.clear()
    assert refused(visitor.get("open", **{"Sec-Fetch-Site": site}), caplog)


def test_a_header_twice_is_not_trusted(server):
    visitor = Visitor(server)
    request = (
        f"POST {visitor.home}plan/undo HTTP/1.1\r\nHost: {visitor.host}\r\nCookie: {visitor.cookie}\r\n"
        f"Origin: http://{visitor.host}\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n\r\n"
    )
    with line_to(server, request.encode()) as line:
        assert line.recv(100).startswith(b"HTTP/1.1 403")


def test_web_sockets_are_not_answered(server):
    visitor = Visitor(server)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "AAAAAAAAAAAAAAAAAAAAAA=="
    try:
        status = visitor.get("open", **upgrade).status
    except http.client.HTTPException:
        status = None  # cut off
    assert status != 101


def test_what_every_answer_says(server):
    visitor = Visitor(server)
    for path in ("open", "static/page.js", "static/report.css", "no-such-page", "plan"):
        headers = visitor.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["access-control-allow-origin"] is None
        assert headers["server"] is None


def test_the_cookie_is_out_of_reach(server):
    stranger = Visitor(server, enter=False)
    answer = stranger.ask("GET", server.address.partition(stranger.host)[2], whole=True)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert f"Path={server.keys.home}" in cookie
    assert server.keys.cookie not in answer.text


def test_secrets_differ_from_server_to_server(folder, tmp_path, server):
    with served(folder, temporary=tmp_path) as other:
        for secret in ("token", "cookie", "home"):
            assert getattr(other.keys, secret) != getattr(server.keys, secret)
        # The cookie of one does not open the other.
        visitor = Visitor(server)
        stranger = Visitor(other, enter=False)
        assert stranger.get("open", Cookie=visitor.cookie).status == 403


@pytest.mark.posix
def test_the_browser_is_started_without_the_token(folder, tmp_path, monkeypatch):
    """All users see the words by which programs were started."""
    started = []
    monkeypatch.setattr("webbrowser.open", lambda address: not started.append(address))
    with served(folder, temporary=tmp_path) as server:
        assert _open_browser(server)
        (address,) = started
        assert address.startswith("file://")
        assert server.keys.token not in address
        way = server.private / "enter.html"
        assert server.keys.token in way.read_text()
        assert way.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="takes a second user")
@pytest.mark.posix
def test_another_user_of_this_machine_sees_nothing(folder):
    """A program of another user can connect, and neither enter nor read the files of the page."""
    attempt = textwrap.dedent(
        """
        import encodings.idna, http.client, os, sys
        os.setgroups([]); os.setgid(65534); os.setuid(65534)  # nobody
        port, open_folder, private = sys.argv[1:]
        line = http.client.HTTPConnection("127.0.0.1", int(port))
        line.request("GET", "/")
        print(line.getresponse().status)
        print(len(os.listdir(open_folder)))
        try:
            print(os.listdir(private))
        except PermissionError:
            print("refused")
        """
    )
    with tempfile.TemporaryDirectory() as everybodys:
        os.chmod(everybodys, 0o755)
        with served(folder, temporary=Path(everybodys)) as server:
            words = [str(server.port), everybodys, str(server.private)]
            done = subprocess.run(
                [sys.executable, "-I", "-c", attempt, *words],
                text=True,
                capture_output=True,
                check=False,
            )
    assert done.stdout.split() == ["403", "1", "refused"], done.stderr


def serve_alone(folder, said):
    """Serve without a browser; what is said is put into a list."""
    say = lambda label, words: said.append(words)  # noqa: E731
    serve([folder], port=0, open_browser=False, limits=RequestLimits(), say=say)


def test_words_without_a_browser(folder, monkeypatch):
    """The address, and the way to it from elsewhere; no way to listen on other addresses."""
    said = []
    monkeypatch.setattr(Server, "run", Server.close)
    serve_alone(folder, said)
    text = "\n".join(said)
    assert "http://127.0.0.1:" in text
    assert "ssh -N -L" in text


def test_the_log_goes_where_the_command_speaks(folder, monkeypatch):
    said = []

    def run(server):
        logging.getLogger("microagg.page").warning("refused")
        server.close()

    monkeypatch.setattr(Server, "run", run)
    serve_alone(folder, said)
    assert said[-1] == "refused"


def test_it_ends_when_nobody_comes(folder, tmp_path):
    with served(folder, temporary=tmp_path, limits=RequestLimits(idle=0.1)) as server:
        private = server.private
        assert private.exists()
        ends = time.monotonic() + 600
        while private.exists():
            assert time.monotonic() < ends
            time.sleep(0.05)
        assert ("ended", "nobody has used the page for a while") in server.said
