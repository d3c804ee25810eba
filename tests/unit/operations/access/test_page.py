"""The page of tokens (SPEC SEC-8). That of sign-ins is in ``tests.security.test_sign_in``."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from goclaw_py.core.actors import AccessRole
from goclaw_py.records.tokens import is_token
from goclaw_py.web.signin import COOKIE
from tests.unit.web.fakes import NOW
from tests.unit.web.pages.conftest import Browser, World


@pytest.fixture
async def admin(world: World, locked: Browser) -> Browser:
    locked.cookies.set(COOKIE, await world.sign_in())
    return locked


async def test_the_page_lists_tokens_and_says_which_have_expired(admin: Browser) -> None:
    said = await admin.says("/tokens", "grafana", "<old>", "expired", "Revoke")
    assert "reads text" not in said


async def test_a_new_token_is_shown_once(world: World, admin: Browser) -> None:
    answer = await admin.send_form(
        "/tokens/create", name="ci", role="viewer", text="yes", days="90"
    )
    assert answer.status_code == 200
    (secret,) = re.findall('<input id="secret" readonly value="(goclaw_.+?)"', answer.text)
    assert is_token(secret)
    assert secret not in await admin.says("/tokens", "grafana")
    assert answer.headers["cache-control"] == "no-store"
    end = NOW + timedelta(days=90)
    assert ("add_token", "ci", AccessRole.VIEWER, True, end) in world.control.calls


@pytest.mark.parametrize(("fields", "status", "said"), [
    ({"name": "grafana", "role": "viewer", "days": ""}, 409, "there is a token"),
    ({"name": "", "role": "viewer", "days": ""}, 422, "1 to 64 characters"),
    ({"name": "x" * 300, "role": "viewer", "days": ""}, 422, "1 to 64 characters"),
    ({"name": "a\x00b", "role": "viewer", "days": ""}, 422, "1 to 64 characters"),
    ({"name": "<script>\n", "role": "viewer", "days": ""}, 422, "1 to 64 characters"),
    ({"name": "ci", "role": "owner", "days": ""}, 422, "choose a role and an end"),
    ({"name": "ci", "role": "viewer", "days": "-1"}, 422, "choose a role and an end"),
    ({"name": "ci"}, 422, "choose a role and an end"),
])  # fmt: skip
async def test_what_no_token_can_be_is_refused(
    admin: Browser, fields: dict[str, str], status: int, said: str
) -> None:
    page = await admin.refuses("/tokens/create", status, said, **fields)
    assert "<script>" not in page.partition("<body")[2]


async def test_a_token_is_revoked_once(admin: Browser) -> None:
    await admin.leads("/tokens/revoke", "/tokens?notice=revoked+token+grafana", name="grafana")
    await admin.leads("/tokens/revoke", "/tokens?notice=nothing", name="nobody")
    await admin.refuses("/tokens/revoke", 422, "a token has a name")


async def test_without_a_token_of_the_settings_there_is_no_such_page(browser: Browser) -> None:
    assert (await browser.get("/tokens")).status_code == 404
    assert 'href="/tokens"' not in (await browser.get("/")).text
