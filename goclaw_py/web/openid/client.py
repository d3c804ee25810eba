"""How the gateway is known to an OpenID provider, and one attempt to sign in (SPEC SEC-10)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final

from goclaw_py.core.web_links import SECRET_BYTES, is_secret
from goclaw_py.web.group_roles import GroupRoles

START_PATH: Final = "/login/openid"
"""Leads a browser to the provider."""

CALLBACK_PATH: Final = "/login/openid/callback"
"""The provider leads it back there."""

LASTS_S: Final = 600
"""How long a person may take at the provider."""

_MOST_NEXT: Final = 1_500
"""The longest path to which an attempt returns: a cookie has 4 KiB."""


class OpenIdFailure(Exception):
    """An attempt to sign in fails; the text says why, for the person.

    Args:
        status: 400 if this is no answer to a question of this browser, 403 if the person is
            refused, 503 if the provider cannot be used now. Only 403 counts as an attempt: any page
            can send a browser here with nothing.
    """

    def __init__(self, text: str, status: int = 403) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class OpenIdClient:
    """How the gateway is known to a provider, and how it reads what that says of people.

    Args:
        issuer: The address of the provider.
        secret: "" for a public client.
        public_url: The address of this gateway, without a slash at its end.
        label: What people call the provider.
        groups_claim: The claim with the groups; with dots one within others.
        name_claim: The claim with the name of the person.
        emails: Addresses, and domains with "@" before them, of those who may come in; empty: all.
    """

    issuer: str
    client_id: str
    public_url: str
    secret: str = field(default="", repr=False)
    label: str = "OpenID"
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = "groups"
    name_claim: str = "preferred_username"
    emails: tuple[str, ...] = ()
    roles: GroupRoles = field(default_factory=GroupRoles)

    @property
    def redirect_uri(self) -> str:
        """Where the provider leads browsers back to. It depends on no request."""
        return f"{self.public_url}{CALLBACK_PATH}"

    @property
    def is_tls(self) -> bool:
        """Whether browsers reach this gateway by TLS."""
        return self.public_url.startswith("https://")


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """One attempt of one browser, which keeps it in a cookie.

    State, nonce and verifier follow from the secret: whoever brings an answer of the provider has
    to be the browser that began, on whatever node.
    """

    secret: str = field(repr=False)
    next: str

    @classmethod
    def begin(cls, wanted: str) -> SignInAttempt:
        """Begin an attempt that returns to a path."""
        return cls(secrets.token_urlsafe(SECRET_BYTES), wanted if len(wanted) <= _MOST_NEXT else "")

    @classmethod
    def read(cls, cookie: str) -> SignInAttempt | None:
        """Return the attempt in a cookie; None if there is none."""
        secret, _, encoded = cookie.partition(".")
        try:
            wanted = base64.urlsafe_b64decode(f"{encoded}==".encode()).decode()
        except ValueError:
            return None
        return cls(secret, wanted) if is_secret(secret) else None

    @property
    def cookie(self) -> str:
        """The value of the cookie."""
        # Without "=", for which a cookie would need quotation marks.
        encoded = base64.urlsafe_b64encode(self.next.encode()).decode().rstrip("=")
        return f"{self.secret}.{encoded}"

    @property
    def state(self) -> str:
        """Shows that the answer belongs to this browser."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """Shows that the ID token was made for this attempt."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """Shows the provider that whoever brings the code has begun the attempt (PKCE)."""
        return self._derived("verifier")

    def _derived(self, purpose: str) -> str:
        return hmac.new(self.secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()
