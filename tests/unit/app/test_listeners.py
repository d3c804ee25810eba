"""What is served over TCP is what the settings say (SPEC OPS-2, SEC-1)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from starlette.types import Scope

from goclaw_py.app.listeners import listen_web
from goclaw_py.chat.channel import Hook, WebAnswer, WebRequest
from goclaw_py.config import Settings
from goclaw_py.config.web import Web
from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import SettingError
from goclaw_py.web.front import WebAccess
from goclaw_py.web.tcp import CannotListen, listen_tcp

TOKEN = "0123456789abcdef"


async def _hooked(_request: WebRequest) -> WebAnswer:
    return WebAnswer(200)


HOOK = Hook("/x", _hooked, 10)


def settings(home: Path, **web: object) -> Settings:
    return Settings(home=home, web=Web.model_validate({"port": 0, **web}))


def say(line: str) -> None:
    raise AssertionError(line)


@pytest.mark.parametrize(("web", "hooks", "expected"), [
    ({}, [], True),
    ({"api": False}, [], None),
    ({"host": "0.0.0.0"}, [], None),
    ({"host": "0.0.0.0", "token": TOKEN}, [], True),
    ({}, [HOOK], False),
    ({"token": TOKEN}, [HOOK], True),
    ({"api": True}, [HOOK], True),
    ({"api": False, "token": TOKEN}, [HOOK], False),
])  # fmt: skip
def test_the_dashboard_is_served_where_nobody_unknown_can_come(
    tmp_path: Path, web: dict[str, object], hooks: list[Hook], *, expected: bool | None
) -> None:
    """OPS-2, SEC-1: not beyond this machine, nor behind a proxy for hooks, without a token."""
    listener = listen_web(settings(tmp_path, **web), hooks, {}, say)
    if expected is None:
        assert listener is None
        return
    assert listener is not None
    with closing(listener):
        assert (listener.access is not None) is expected


def test_an_address_that_nobody_chose_may_be_taken(tmp_path: Path) -> None:
    said: list[str] = []
    with closing(listen_tcp("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        by_chance = Settings(home=tmp_path, web=Web())
        object.__setattr__(by_chance.web, "port", port)
        assert listen_web(by_chance, [], {}, said.append) is None
        assert [str(port) in line for line in said] == [True]
        for chosen, hooks in (({"port": port}, []), ({"port": port, "api": True}, [HOOK])):
            with pytest.raises(CannotListen, match=str(port)):
                listen_web(settings(tmp_path, **chosen), hooks, {}, say)


def test_the_api_is_opened_with_its_names_and_its_token(tmp_path: Path) -> None:
    web = {"api": True, "hosts": ["bot.example.org"], "token_env": "MINE"}
    listener = listen_web(settings(tmp_path, **web), [], {"MINE": TOKEN}, say)
    assert listener is not None
    with closing(listener):
        assert listener.access == WebAccess("127.0.0.1", ("bot.example.org",), TOKEN)
    with pytest.raises(SettingError, match="MINE"):
        listen_web(settings(tmp_path, **web), [], {}, say)


def test_the_token_is_not_shown_with_the_listener(tmp_path: Path) -> None:
    """SPEC SEC-2: nobody logs it by accident."""
    listener = listen_web(settings(tmp_path, api=True, token=TOKEN), [], {}, say)
    assert listener is not None
    with closing(listener):
        assert TOKEN not in repr(listener)


RULES = {"admin_groups": ["ops"], "viewer_groups": ["staff"], "default_role": "viewer"}


def test_who_signs_people_in_is_handed_over(tmp_path: Path) -> None:
    """SEC-10: every setting of a proxy and of a provider."""
    proxy: dict[str, object] = {**RULES, "addresses": ["10.0.0.0/24"], "user_header": "X-User"}
    proxy |= {"groups_header": "X-Groups", "sign_out_url": "https://a.example.org"}
    openid: dict[str, object] = {
        **RULES,
        "issuer": "https://sso.example.org",
        "client_id": "x",
        "name": "Acme",
    }
    openid |= {"client_secret_env": "IT", "scopes": ["groups"], "groups_claim": "g"}
    openid |= {"name_claim": "n", "emails": ["@example.org"], "viewers_read_text": True}
    web: dict[str, object] = {"token": TOKEN, "public_url": "https://b.example.org/"}
    web |= {"proxy": proxy, "openid": openid}
    listener = listen_web(settings(tmp_path, **web), [], {"IT": "of-the-client"}, say)
    assert listener is not None
    with closing(listener):
        access = listener.access
    assert access is not None
    client = access.openid
    assert client is not None
    assert (client.issuer, client.client_id, client.secret) == (
        "https://sso.example.org", "x", "of-the-client",
    )  # fmt: skip
    assert client.redirect_uri == "https://b.example.org/login/openid/callback"
    assert (client.label, client.scopes, client.emails) == ("Acme", ("groups",), ("@example.org",))
    assert (client.groups_claim, client.name_claim) == ("g", "n")
    ann = client.roles.person("ann", ["staff"], "")
    assert ann is not None
    assert (ann.role, ann.reads_text) == (AccessRole.VIEWER, True)
    assert access.proxy is not None
    assert access.proxy.sign_out_url == "https://a.example.org"
    headers = [(b"x-user", b"ann"), (b"x-groups", b"ops")]
    scope: Scope = {"headers": headers, "client": ("10.0.0.9", 1)}
    access.proxy.note_client(scope)
    found = access.proxy.person(scope)
    assert found is not None
    assert found.role is AccessRole.ADMIN


def test_by_default_nobody_else_signs_people_in(tmp_path: Path) -> None:
    listener = listen_web(settings(tmp_path, token=TOKEN), [], {}, say)
    assert listener is not None
    with closing(listener):
        assert listener.access is not None
        assert (listener.access.proxy, listener.access.openid) == (None, None)
