"""A provider of OpenID Connect on a socket of this machine, which can be told to lie.

The honest cases are also tried at a provider that others wrote (`oidc-provider-mock`), which
cannot be made to forge tokens and knows no device's codes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import ssl
import threading
import time
import warnings
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

CLIENT = "tidewheel"
ADA = {
    "sub": "4711",
    "email": "ada@example.org",
    "email_verified": True,
    "groups": ["team-a", "everybody"],
}


class After(int):
    """A time, as seconds from now."""


class Key:
    """A key pair with a name."""

    def __init__(self, name: str, method: str = "RS256", bits: int = 2048) -> None:
        self.name, self.method = name, method
        if method.startswith("ES"):
            self.private: Any = ec.generate_private_key(ec.SECP256R1())
            public = ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        else:
            self.private = rsa.generate_private_key(65537, bits)
            public = RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        self.jwk = {**public, "kid": name, "use": "sig", "alg": method}

    def sign(self, claims: dict[str, Any], **head: Any) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about keys that are too short, as is meant
            head = {"kid": self.name, **head}
            return jwt.encode(claims, self.private, self.method, headers=head)


@cache
def usual_key() -> Key:
    """One for all tests of this process: it takes a while to make."""
    return Key("first")


class Provider:
    """What it answers can be changed while it runs; `asked` has every form that came."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = usual_key()
        self.keys = [self.key.jwk]
        self.forged: Any = None
        self.document: dict[str, Any] = {}  # changes of the document about itself
        self.answers: dict[str, Any] = {}  # by path: (status, headers, content) instead
        self.codes: dict[str, dict[str, Any]] = {}
        self.patience: list[Any] = ["authorization_pending"]  # with devices
        self.devices: dict[str, Any] = {}
        self.asked: list[dict[str, str]] = []
        self.headers: list[Any] = []

    def sign(self, claims: dict[str, Any]) -> str:
        return (self.forged or self.key.sign)(claims)

    def metadata(self) -> dict[str, Any]:
        paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token"}
        paths |= {"jwks_uri": "/jwks", "device_authorization_endpoint": "/device"}
        known = {name: self.url + path for name, path in paths.items()}
        return {"issuer": self.url, **known, **self.document}

    def signs_in(self, address: str, claims: dict[str, Any] = ADA, **more: Any) -> str:
        """What somebody does who was sent there: the code for this request."""
        asked = {name: text for name, [text] in parse_qs(urlsplit(address).query).items()}
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = {"asked": asked, "claims": claims, "more": more}
        return code

    def id_token(self, claims: dict[str, Any], nonce: str | None, more: dict[str, Any]) -> str:
        now = int(time.time())  # noqa: TID251 - a provider goes by its own clock
        whole = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, **claims}
        whole |= {} if nonce is None else {"nonce": nonce}
        whole |= more
        times = {name: now + one for name, one in whole.items() if isinstance(one, After)}
        return self.sign({k: v for k, v in (whole | times).items() if v is not None})

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if form.get("grant_type") == "authorization_code":
            known = self.codes.pop(form.get("code", ""), None)
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if (
                known is None
                or known["asked"]["code_challenge"] != challenge
                or known["asked"]["redirect_uri"] != form.get("redirect_uri")
                or known["asked"]["client_id"] != form.get("client_id")
            ):
                return 400, {"error": "invalid_grant"}
            nonce = known["asked"].get("nonce")
            return 200, {"id_token": self.id_token(known["claims"], nonce, known["more"])}
        known = self.devices.get(form.get("device_code", ""))
        if known is None:
            return 400, {"error": "expired_token"}
        if isinstance(known, list):  # the words for those who ask too soon, then the claims
            word = known.pop(0) if len(known) > 1 else known[0]
            if isinstance(word, str):
                return 400, {"error": word}
            known = word
        del self.devices[form["device_code"]]
        return 200, {"id_token": self.id_token(known, None, {})}

    def device(self) -> tuple[int, dict[str, Any]]:
        code = secrets.token_urlsafe(16)
        self.devices[code] = list(self.patience)
        told = {"device_code": code, "user_code": "WDJB-MJHT", "expires_in": 60}
        return 200, {**told, "verification_uri": f"{self.url}/device", "interval": 0.05}

    def approve(self, claims: dict[str, Any] = ADA) -> None:
        """Somebody types the code of the device that came last."""
        self.devices[list(self.devices)[-1]] = claims


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path == "/.well-known/openid-configuration":
                self._tell(path, 200, provider.metadata())
            elif path == "/authorize":  # a browser whose person is known here already
                code = provider.signs_in(self.path)
                asked = parse_qs(urlsplit(self.path).query)
                back = urlencode({"code": code, "state": asked["state"][0]})
                self.send_response(302)
                self.send_header("Location", f"{asked['redirect_uri'][0]}?{back}")
                self.end_headers()
            else:
                self._tell(path, 200, {"keys": provider.keys})

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: value for name, [value] in parse_qs(text).items()}
            provider.asked.append(form)
            provider.headers.append(self.headers)
            is_token = self.path == "/token"
            self._tell(self.path, *(provider.token(form) if is_token else provider.device()))

        def _tell(self, path: str, status: int, document: Any) -> None:
            headers, content = {}, json.dumps(document).encode()
            if path in provider.answers:
                status, headers, content = provider.answers[path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def running_provider(name: str = "127.0.0.1", certificate: Path | None = None) -> Any:
    """Answers until the end of the block; with a certificate (and its key) over TLS."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    provider = Provider(f"{scheme}://{name}:{server.server_port}")
    server.RequestHandlerClass = _handler(provider)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def own_certificate(folder: Path, name: str) -> Path:
    """A certificate for a name that nobody signed, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    called = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime(2020, 1, 1, tzinfo=UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(called)
        .issuer_name(called)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=20_000))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / f"{name}.pem"
    path.write_bytes(private + made.public_bytes(pem))
    return path
