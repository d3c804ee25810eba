"""What the claims of an OpenID provider say of a person (SPEC SEC-10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from goclaw_py.core.actors import Actor
from goclaw_py.web.group_roles import is_name
from goclaw_py.web.openid.client import OpenIdClient, OpenIdFailure

Claims: TypeAlias = Mapping[str, Any]


def lacks(claims: Claims, client: OpenIdClient) -> bool:
    """Return whether claims leave open what has to be known of a person."""
    is_grouped = bool(client.roles.groups)
    return (
        (is_grouped and _at(claims, client.groups_claim) is None)
        or (bool(client.emails) and not {"email", "email_verified"} <= claims.keys())
        or claims.get(client.name_claim) is None
    )


def joined(claims: Claims, more: Claims) -> dict[str, Any]:
    """Return the claims of an ID token with what only the user info has."""
    if "email" in claims and claims["email"] != more.get("email"):
        # It was not this address that was verified.
        more = {name: value for name, value in more.items() if name != "email_verified"}
    return {**more, **claims}


def person_of(claims: Claims, client: OpenIdClient, via: str) -> Actor:
    """Return the person. Raises ``OpenIdFailure``."""
    name = next(filter(is_name, _names(claims, client)), "")
    if not name:
        raise OpenIdFailure(f"{client.label} does not say who you are.")
    if client.emails and not _is_expected(claims, client):
        raise OpenIdFailure(f"{name} may not sign in here: this e-mail address is not expected.")
    found = client.roles.person(name, _groups(claims, client), via)
    if found is None:
        raise OpenIdFailure(
            f"{name} has no role here: no group of theirs is named in the settings of the gateway."
        )
    return found


def _names(claims: Claims, client: OpenIdClient) -> Iterator[str]:
    for key in (client.name_claim, "email", "sub"):
        # Anybody can enter an address that is not theirs.
        is_sure = key != "email" or claims.get("email_verified") is True
        if is_sure and isinstance(value := claims.get(key), str):
            yield value


def _groups(claims: Claims, client: OpenIdClient) -> frozenset[str]:
    """Return the groups: a list of texts, or one text. Anything else is no group."""
    found = _at(claims, client.groups_claim)
    if isinstance(found, str):
        return frozenset({found})
    if not isinstance(found, list):
        return frozenset()
    return frozenset(each for each in found if isinstance(each, str))


def _at(claims: Claims, name: str) -> Any:
    """Return a claim by its name, or by the names on the way to it."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for key in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def _is_expected(claims: Claims, client: OpenIdClient) -> bool:
    email = claims.get("email")
    if not isinstance(email, str) or claims.get("email_verified") is not True:
        return False
    given = email.casefold()
    expected = {each.casefold() for each in client.emails}
    return given in expected or f"@{given.rpartition('@')[2]}" in expected
