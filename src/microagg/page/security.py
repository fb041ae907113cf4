"""The guard before the page: it admits requests and sets the security headers of every answer.

Other programs on this machine, other users, and web pages in the same browser can all send requests to
the loopback address. Only who holds the cookie is let in; it is given for a token that works once and that
only the starting user sees. The page lives under a random folder of the address and the cookie is sent
to that alone, since browsers send cookies to all ports of a machine, also to somebody else's server.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response

log = logging.getLogger("microagg.page")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_COOKIE = "microagg"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",  # with no-referrer, browsers would hide the origin of forms
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_ENTER = "/enter"
# Not a redirect: a cookie that is SameSite=Strict goes along only with what our own page asks for.
_WELCOME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={home}">
<link rel="icon" href="data:,"><title>microagg</title></head>
<body><p><a href="{home}">Go on to the page</a></p></body></html>
"""


class Keys:
    """The secrets of one server."""

    def __init__(self) -> None:
        self.home = f"/{secrets.token_hex(8)}/"  # where the page lives
        self.cookie = secrets.token_urlsafe(32)
        self.token = secrets.token_urlsafe(32)

    def use(self, token: str) -> bool:
        """Return whether a token is right; if so, replace it, since it works only once."""
        right = secrets.compare_digest(token.encode(), self.token.encode())
        if right:
            self.token = secrets.token_urlsafe(32)
        return right

    def entrance(self, port: int) -> str:
        """Return the address that lets one browser in."""
        return f"http://127.0.0.1:{port}{_ENTER}?token={self.token}"


class Guard:
    """Admits requests of the user's browser, and tells the browser what it may do with the answer."""

    def __init__(self, app: App, keys: Keys, port: int, entered: Callable[[], None]) -> None:
        self._app, self._keys, self._entered = app, keys, entered
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return  # neither web sockets nor anything else
        # Duplicates are joined, so that they match no expected value; names come in lower case.
        received = Headers(raw=[(name.lower(), value) for name, value in scope["headers"]])
        headers = {name: "; ".join(received.getlist(name)) for name in received}
        why = self._refusal(scope, headers)
        if why is not None:
            # Neither the path nor a header: what they hold is somebody else's.
            log.warning("refused %s: %s", scope["method"][:8], why)
            answer: App = PlainTextResponse(f"Refused: {why}.\n", 403)
        elif scope["path"] == _ENTER:
            answer = self._enter(scope, headers)
        else:
            answer = self._app

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> str | None:
        host = headers.get("host", "")
        if host not in self._hosts:
            return "the request is for another host"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return "the request comes from another site"
        if origin is None and scope["method"] not in ("GET", "HEAD"):
            return "the request does not tell where it comes from"
        if scope["path"] == _ENTER:
            return None
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "the request comes from another site"
        pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
        ours = self._keys.cookie.encode()
        holds_cookie = any(
            name == _COOKIE and secrets.compare_digest(value.encode(), ours)
            for name, _, value in pairs
        )
        if not (scope["path"].startswith(self._keys.home) and holds_cookie):
            return "the address needs the token that the command printed"
        return None

    def _enter(self, scope: Scope, headers: dict[str, str]) -> Response:
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        # What a browser fetches ahead, while an address is being typed, must not use the token up.
        ahead = "prefetch" in headers.get("sec-purpose", headers.get("purpose", ""))
        if scope["method"] != "GET" or ahead or not self._keys.use(token):
            log.warning("refused an entrance: the token is wrong or was used before")
            words = (
                "Refused: this address works once. The command prints a new one when one is used.\n"
            )
            return PlainTextResponse(words, 403)
        self._entered()
        cookie = f"{_COOKIE}={self._keys.cookie}; Path={self._keys.home}; HttpOnly; SameSite=Strict"
        page = _WELCOME.format(home=self._keys.home)
        return HTMLResponse(page, headers={"set-cookie": cookie})
