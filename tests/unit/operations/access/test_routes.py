"""``/api/web/sign-ins`` and ``/api/tokens`` (SPEC SEC-6, SEC-8)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import NotAccepted, NotFound
from goclaw_py.records import Token
from goclaw_py.records.tokens import TokenExists, is_token
from tests.unit.web.fake_access import BROWSER, EXPIRED, GRAFANA, OTHER
from tests.unit.web.fake_names import AT
from tests.unit.web.harness import Api, Gateway

END = datetime(2027, 1, 1, tzinfo=UTC)


async def test_browsers_are_listed_and_signed_out(remote: RemoteControl) -> None:
    assert await remote.access.sign_ins() == [BROWSER, OTHER]
    await remote.access.end_sign_in(OTHER.id)
    with pytest.raises(NotFound, match="no browser has the sign-in 'nobody'"):
        await remote.access.end_sign_in("nobody")
    assert await remote.access.end_sign_ins() == 2


async def test_the_client_makes_lists_and_revokes_tokens(
    made: Gateway, remote: RemoteControl
) -> None:
    assert await remote.access.tokens() == [GRAFANA, EXPIRED]
    new = await remote.access.create_token(
        "ci/1 ü", AccessRole.VIEWER, reads_text=True, expires_at=END
    )
    assert is_token(new.secret)
    assert new.token == Token("ci/1 ü", AccessRole.VIEWER, True, AT, END)
    await remote.access.revoke_token("<old>")
    assert made.control.calls[-1] == ("revoke_token", "<old>")
    with pytest.raises(NotFound, match="there is no token 'a/b'"):
        await remote.access.revoke_token("a/b")
    with pytest.raises(TokenExists, match="there is a token 'grafana'"):
        await remote.access.create_token("grafana", AccessRole.VIEWER)
    with pytest.raises(NotAccepted):
        await remote.access.create_token("a\nb", AccessRole.VIEWER)


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
