"""Tokens over the API (SPEC SEC-8)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import NotFound
from goclaw_py.records.tokens import BadToken, TokenExists
from goclaw_py.web.api.error_json import NotAccepted
from tests.unit.web.fake_guests import EXPIRED, GRAFANA, SECRET
from tests.unit.web.harness import Api

END = datetime(2027, 1, 1, tzinfo=UTC)


async def test_the_client_makes_lists_and_revokes_them(remote: RemoteControl) -> None:
    assert await remote.tokens() == [GRAFANA, EXPIRED]
    made = await remote.create_token("ci/1 ü", AccessRole.OPERATOR, reads_text=True, expires_at=END)
    assert (made.secret, made.token.name) == (f"goclaw_{SECRET}", "ci/1 ü")
    assert (made.token.role, made.token.expires_at) == (AccessRole.OPERATOR, END)
    await remote.revoke_token("grafana")
    with pytest.raises(NotFound):
        await remote.revoke_token("a/b")
    with pytest.raises(TokenExists, match="there is a token 'grafana'"):
        await remote.create_token("grafana", AccessRole.VIEWER)
    with pytest.raises((BadToken, NotAccepted)):
        await remote.create_token("a\nb", AccessRole.VIEWER)


@pytest.mark.parametrize(("body", "status"), [
    ({"name": "ci", "role": "viewer"}, 200),
    ({"name": "ci", "role": "owner"}, 422),
    ({"name": "ci", "role": "ADMIN"}, 422),
    ({"name": "ci"}, 422),
    ({"role": "viewer"}, 422),
    ({"name": "", "role": "viewer"}, 422),
    ({"name": "x" * 300, "role": "viewer"}, 422),
    ({"name": "x" * 100_000, "role": "viewer"}, 422),
    ({"name": ["ci"], "role": "viewer"}, 422),
    ({"name": "ci", "role": "viewer", "expires_at": "2027-01-01"}, 422),
    ({"name": "ci", "role": "viewer", "expires_at": "2027-01-01T00:00:00"}, 422),
    ({"name": "ci", "role": "viewer", "expires_at": "9999-12-31T23:59:59-12:00"}, 422),
    ({"name": "ci", "role": "viewer", "secret": "mine"}, 422),
    ({"name": "ci", "role": "viewer", "reads_text": "maybe"}, 422),
    ({"name": "grafana", "role": "viewer"}, 409),
])  # fmt: skip
async def test_what_can_be_asked_for(api: Api, body: object, status: int) -> None:
    found, answer = await api("POST", "/tokens", body)
    assert found == status, answer
