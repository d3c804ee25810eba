"""The OpenID provider: its description, its keys, and the exchange of a code (SPEC SEC-10).

Nothing that a provider answers is larger than ``MOST_BYTES`` or waited for longer than ``LIMIT_S``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from goclaw_py.core.actors import Actor
from goclaw_py.core.net.proxies import is_loopback, proxy_for, tls_context
from goclaw_py.web.openid.claims import Claims, joined, lacks, person_of
from goclaw_py.web.openid.client import OpenIdClient, OpenIdFailure, SignInAttempt

log = logging.getLogger(__name__)

MOST_BYTES: Final = 256 * 1024
LIMIT_S: Final = 10.0

KEEP_S: Final = 3_600.0
"""Seconds for which description and keys of a provider are used."""

KEYS_EVERY_S: Final = 60.0
"""Seconds between two requests for keys because of an ID token with an unknown one."""

RETRY_S: Final = 10.0
"""Seconds after a failure in which the provider is not asked again for its description."""

LEEWAY_S: Final = 60
"""Seconds by which its clock may differ."""

_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384",
                      "ES512", "EdDSA", "Ed25519")  # fmt: skip
"""Signatures with a private key. With the others whoever has the public key could sign, or all."""

_NEEDED: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_ERROR: Final = re.compile(r"[a-z_]{1,40}")


class _Unreadable(Exception):
    """What a provider answers is no description, no keys and no claims."""


class OpenIdProvider:
    """Signs people in by authorization code, with PKCE.

    Args:
        client: How the provider knows us.
        now_s: Returns the Unix time in seconds.
    """

    def __init__(self, client: OpenIdClient, now_s: Callable[[], float]) -> None:
        self._client = client
        self._now_s = now_s
        self._lock = asyncio.Lock()
        self._description: Claims = {}
        self._described_at = self._failed_at = float("-inf")
        self._keys_at = self._keys_tried_at = float("-inf")
        self._failure = ""
        self._keys: KeySet | None = None

    async def address(self, attempt: SignInAttempt) -> str:
        """Return where a browser signs in. Raises ``OpenIdFailure``."""
        description = await self.description()
        async with self._session() as session:
            address, _ = session.create_authorization_url(
                description["authorization_endpoint"],
                state=attempt.state,
                code_verifier=attempt.verifier,
                nonce=attempt.nonce,
            )
        return str(address)

    async def sign_in(self, attempt: SignInAttempt, code: str, via: str) -> Actor:
        """Exchange a code for the person who has signed in. Raises ``OpenIdFailure``."""
        description = await self.description()
        async with self._answers("signing in"), self._session() as session:
            try:
                token = await session.fetch_token(
                    description["token_endpoint"],
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=attempt.verifier,
                )
            except AuthlibBaseError as error:
                # Such as a code that was used before.
                named = str(error.error)
                shown = named if _ERROR.fullmatch(named) else "an error"
                text = f"{self._client.label} refuses this sign-in ({shown}). Sign in again."
                raise OpenIdFailure(text) from error
            claims = await self._claims(token, attempt)
            if lacks(claims, self._client) and "userinfo_endpoint" in description:
                headers = {"authorization": f"Bearer {token['access_token']}"}
                more = await self._fetch(session, description["userinfo_endpoint"], headers)
                if more.get("sub") != claims["sub"]:
                    raise _Unreadable("the claims of somebody else")
                claims = joined(claims, more)
        return person_of(claims, self._client, via)

    async def sign_out_address(self) -> str:
        """Return where people sign out of the provider; "" if that is not known now."""
        try:
            address = (await self.description()).get("end_session_endpoint")
        except OpenIdFailure:
            return ""
        if not isinstance(address, str) or not self._is_safe(address):
            return ""
        sign = "&" if "?" in address else "?"
        return f"{address}{sign}{urlencode({'client_id': self._client.client_id})}"

    async def description(self) -> Claims:
        """Return the description of the provider. Raises ``OpenIdFailure``."""
        async with self._lock:
            now_s = self._now_s()
            if 0 <= now_s - self._described_at < KEEP_S:
                return self._description
            if 0 <= now_s - self._failed_at < RETRY_S:
                raise OpenIdFailure(self._failure, 503)
            address = f"{self._client.issuer.rstrip('/')}/.well-known/openid-configuration"
            try:
                async with self._answers("its description"), self._session() as session:
                    found = await self._fetch(session, address)
                    self._check(found)
            except OpenIdFailure as error:
                self._failed_at, self._failure = now_s, str(error)
                raise
            self._description, self._described_at = found, now_s
            return found

    def _check(self, found: Claims) -> None:
        """Raise ``_Unreadable`` for a description that is another's, or of no use."""
        if found.get("issuer") != self._client.issuer:
            raise _Unreadable(f"the issuer is {found.get('issuer')!r:.200}")
        for name in _NEEDED:
            if not isinstance(found.get(name), str) or not self._is_safe(found[name]):
                raise _Unreadable(f"{name} is missing or not safe")
        if "userinfo_endpoint" in found and not self._is_safe(str(found["userinfo_endpoint"])):
            raise _Unreadable("userinfo_endpoint is not safe")

    def _is_safe(self, address: str) -> bool:
        """Return whether nobody on the way can change what is sent."""
        parts = urlsplit(address)
        host = parts.hostname or ""
        return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))

    async def _claims(self, token: Mapping[str, Any], attempt: SignInAttempt) -> dict[str, Any]:
        """Return the claims of a valid ID token."""
        client = self._client
        try:
            read = await self._decoded(str(token["id_token"]))
            claims = CodeIDToken(
                read.claims,
                read.header,
                {
                    "iss": {"essential": True, "value": client.issuer},
                    "aud": {"essential": True, "value": client.client_id},
                },
                {
                    "nonce": attempt.nonce,
                    "client_id": client.client_id,
                    "access_token": token.get("access_token"),
                },
            )
            claims.validate(now=int(self._now_s()), leeway=LEEWAY_S)
        except (JoseError, KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
            log.warning("openid_token_refused", extra={"reason": f"{error!r:.200}"})
            text = f"The answer of {client.label} is not valid; the log of the gateway says why."
            raise OpenIdFailure(text) from error
        return dict(claims)

    async def _decoded(self, id_token: str) -> jwt.Token:
        try:
            return jwt.decode(id_token, await self._key_set(), _ALGORITHMS)
        except InvalidKeyIdError:
            # The provider may have a new key since.
            if 0 <= self._now_s() - self._keys_tried_at < KEYS_EVERY_S:
                raise
            return jwt.decode(id_token, await self._key_set(newer=True), _ALGORITHMS)

    async def _key_set(self, *, newer: bool = False) -> KeySet:
        if self._keys is None or newer or not 0 <= self._now_s() - self._keys_at < KEEP_S:
            self._keys_tried_at = self._now_s()
            async with self._session() as session:
                found: Any = await self._fetch(session, self._description["jwks_uri"])
            try:
                self._keys = KeySet.import_key_set(found)
                self._keys_at = self._keys_tried_at
            except (JoseError, KeyError, ValueError, TypeError, AttributeError) as error:
                raise _Unreadable("no keys") from error
        return self._keys

    async def _fetch(
        self, session: AsyncOAuth2Client, address: str, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        wanted = {"accept": "application/json", **(headers or {})}
        answer = await session.request("GET", address, withhold_token=True, headers=wanted)
        if answer.status_code != 200:
            raise _Unreadable(f"status {answer.status_code}")
        try:
            found = answer.json()
        except (ValueError, RecursionError) as error:
            raise _Unreadable("no JSON") from error
        if not isinstance(found, dict):
            raise _Unreadable("no JSON object")
        return found

    def _session(self) -> AsyncOAuth2Client:
        client = self._client
        given = self._description.get("token_endpoint_auth_methods_supported")
        # By default a secret is sent in the header.
        posts = isinstance(given, list) and "client_secret_basic" not in given
        method = "client_secret_post" if posts else "client_secret_basic"
        proxy = proxy_for(client.issuer, os.environ)
        through = None
        if proxy is not None:
            auth = (proxy.user, proxy.password) if proxy.has_credentials else None
            through = httpx2.Proxy(proxy.address, auth=auth)
        return AsyncOAuth2Client(
            client.client_id,
            client.secret or None,
            token_endpoint_auth_method=method if client.secret else "none",
            scope=" ".join(dict.fromkeys(("openid", *client.scopes))),
            redirect_uri=client.redirect_uri,
            code_challenge_method="S256",
            verify=tls_context(),
            proxy=through,
            trust_env=False,
            timeout=LIMIT_S,
            # What is unpacked could be a thousand times larger.
            headers={"accept-encoding": "identity"},
            event_hooks={"response": [_limit]},
        )

    @asynccontextmanager
    async def _answers(self, what: str) -> AsyncIterator[None]:
        """Translate what a provider does wrong, and wait only so long."""
        label = self._client.label
        try:
            async with asyncio.timeout(LIMIT_S):
                yield
        except TimeoutError as error:
            reason: Exception = error
            text = f"{label} does not answer. Try again later, or use the token."
        except httpx2.HTTPError as error:
            reason = error
            text = f"{label} cannot be reached. Try again later, or use the token."
        except (_Unreadable, KeyError, ValueError, TypeError, RecursionError) as error:
            reason = error
            text = f"{label} answers nothing that can be read. Try again later, or use the token."
        else:
            return
        log.warning("openid_provider_failed", extra={"step": what, "reason": f"{reason!r:.200}"})
        raise OpenIdFailure(text, 503) from reason


async def _limit(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _Unreadable("the answer is packed")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Limited(response.stream)


class _Limited(httpx2.AsyncByteStream):
    """The body of an answer, up to ``MOST_BYTES``."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._stream:
            count += len(chunk)
            if count > MOST_BYTES:
                raise _Unreadable(f"the answer is longer than {MOST_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
