"""An OpenID Connect issuer on loopback: `python -m tests.servers.oidc_issuer people.json` prints its address.

Supports the code flow with a client secret, PKCE (S256 only), a nonce, signed tokens and a sign-in page. `people.json`
maps user names to claims. The claims in `id_token` override those of the ID token; null removes one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import sys
import time
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID = "palimpsest"
CLIENT_SECRET = "of-the-client"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PAGE = """<!doctype html><html lang="en"><title>Issuer</title><h1>Who are you?</h1>
<form method="post"><label>Name <input name="person"></label><button>Sign in</button></form></html>"""


class Refused(Exception):
    """The client gets status 400."""


class Issuer(BaseHTTPRequestHandler):
    people: Path
    codes: dict[str, dict[str, str]] = {}
    tokens: dict[str, str] = {}

    @property
    def address(self) -> str:
        return f"http://{self.headers['Host']}"

    def do_GET(self) -> None:
        self._answer(
            {
                "/.well-known/openid-configuration": self._configuration,
                "/jwks": self._keys,
                "/userinfo": self._userinfo,
                "/authorize": self._page,
            }
        )

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        form = {name: values[0] for name, values in parse_qs(self.rfile.read(length).decode()).items()}
        self._answer({"/authorize": partial(self._sign_in, form), "/token": partial(self._token, form)})

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, routes: dict[str, Callable[[], dict[str, Any] | None]]) -> None:
        try:
            found = routes.get(urlsplit(self.path).path)
            content = found() if found else {"error": "not_found"}
        except Refused as error:
            self._send(400, json.dumps({"error": str(error)}).encode(), "application/json")
            return
        if content is not None:
            self._send(200 if found else 404, json.dumps(content).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "userinfo_endpoint": f"{self.address}/userinfo",
            "jwks_uri": f"{self.address}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def _keys(self) -> dict[str, Any]:
        key = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
        return {"keys": [{**key, "kid": "1", "alg": "RS256", "use": "sig"}]}

    def _page(self) -> None:
        self._send(200, PAGE.encode(), "text/html")

    def _sign_in(self, form: dict[str, str]) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if asked.get("client_id") != CLIENT_ID or asked.get("code_challenge_method") != "S256":
            raise Refused("unauthorized_client")
        code = secrets.token_urlsafe()
        self.codes[code] = {**asked, "person": form["person"]}
        back = urlencode({"code": code, "state": asked["state"]})
        self._send(302, b"", "text/plain", Location=f"{asked['redirect_uri']}?{back}")

    def _token(self, form: dict[str, str]) -> dict[str, Any]:
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or form.get("redirect_uri") != asked["redirect_uri"]:
            raise Refused("invalid_grant")
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            raise Refused("invalid_client")
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            raise Refused("invalid_grant")
        token = secrets.token_urlsafe()
        self.tokens[token] = asked["person"]
        now = int(time.time())
        claims = {
            "iss": self.address,
            "aud": CLIENT_ID,
            "sub": asked["person"],
            "iat": now,
            "exp": now + 300,
            "nonce": asked.get("nonce"),
            **self._said(asked["person"]).get("id_token", {}),
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        id_token = jwt.encode(claims, KEY, algorithm="RS256", headers={"kid": "1"})
        return {"access_token": token, "token_type": "Bearer", "expires_in": 300, "id_token": id_token}

    def _userinfo(self) -> dict[str, Any]:
        person = self.tokens.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
        if person is None:
            raise Refused("invalid_token")
        said = self._said(person)
        return {"sub": person, **{name: value for name, value in said.items() if name != "id_token"}}

    def _said(self, person: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.people.read_text())[person]
        return said


if __name__ == "__main__":
    Issuer.people = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
