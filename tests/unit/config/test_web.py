"""``[web]``: the HTTP API on TCP, and hooks of channels (SPEC CHAN-2, OPS-2, SEC-1, SEC-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.config import Settings, openid_secret, web_token
from goclaw_py.config.secrets import known_secrets
from goclaw_py.config.sources import SECTIONS
from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import SettingError
from tests.unit.config.loading import refused as refused_by
from tests.unit.config.loading import settings


def test_file_and_environment_say_where_to_listen_else_it_is_loopback(tmp_path: Path) -> None:
    web = settings(tmp_path, "").web
    assert (web.host, web.port) == ("127.0.0.1", 8420)
    text = "[web]\nhost = '::'\nport = 65535\n"
    assert settings(tmp_path, text).web.host == "::"
    web = settings(tmp_path, text, GOCLAW_WEB__PORT="0", GOCLAW_WEB__HOST="localhost").web
    assert (web.host, web.port) == ("localhost", 0)


@pytest.mark.parametrize(("text", "expected"), [
    ("port = 65536", "web.port = 65536: must be a whole number, at least 0 and at most 65535"),
    ("port = -1", "web.port = -1: must be a whole number"),
    ("port = '8420'", "web.port = '8420': must be a whole number"),
    ("host = ''", "web.host = '': must be a host name or an address such as 127.0.0.1"),
    ("host = '127.0.0.1 '", "web.host = '127.0.0.1 ': must be a host name"),
    ("host = 127", "web.host = 127: must be a host name"),
    ("prot = 1", "did you mean port?"),
    ("api = 'yes'", "web.api = 'yes': must be true or false"),
    ("token = ''", "web.token = [hidden]: must be 16 to 512 printable ASCII characters without"),
    ("token = 'secret'", "web.token = [hidden]: must be 16 to 512 printable ASCII characters"),
    ("token = 'secret secret secret secret'", "web.token = [hidden]: must be 16 to 512"),
    ("token_env = ' '", "web.token_env = ' ': must be text that is not empty"),
    ("hosts = 'bot.example.org'", "must be a list of texts"),
    ("hosts = ['https://bot.example.org']", "must be host names without scheme and port"),
    ("hosts = ['bot.example.org:8420']", "must be host names without scheme and port"),
    ("hosts = ['bot.example.org/']", "must be host names without scheme and port"),
    ("hosts = ['*.example.org']", "must be host names without scheme and port"),
    ("hosts = ['']", "must be a list of texts"),
])  # fmt: skip
def test_a_wrong_value_is_told(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refused(tmp_path, text)


def test_every_section_can_be_set_by_the_environment() -> None:
    assert set(SECTIONS) == Settings.model_fields.keys() - {"home", "file"}


SECRET = "0123456789abcdef-secret"


def refused(folder: Path, text: str, **env: str) -> str:
    return refused_by(folder, f"[web]\n{text}\n", **env)


def test_whether_the_api_is_on_tcp_can_be_left_open(tmp_path: Path) -> None:
    """SPEC OPS-2; any number of gateways may run on a machine."""
    web = settings(tmp_path, "").web
    assert (web.api, web.hosts, web.is_chance) == (None, (), True)
    assert web_token(settings(tmp_path, ""), {}) is None
    assert settings(tmp_path, "", GOCLAW_WEB__API="true").web.api is True
    assert settings(tmp_path, "", GOCLAW_WEB__API="false").web.api is False
    assert not settings(tmp_path, "", GOCLAW_WEB__PORT="8421").web.is_chance


def test_on_loopback_the_api_needs_no_token(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost", "LOCALHOST"):
        assert settings(tmp_path, f"[web]\napi = true\nhost = '{host}'\n").web.is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "localhost.example.org", "box"])
def test_on_any_other_address_the_api_needs_a_token(tmp_path: Path, host: str) -> None:
    """SPEC OPS-2, SEC-1: the error has both cures; hooks have secrets of their own."""
    line = refused(tmp_path, f"api = true\nhost = '{host}'")
    assert f"goclaw.toml:3: web.host = '{host}': anyone who can reach this address" in line
    assert "set web.token_file (or web.token_env, web.token), or leave the host at 127.0" in line
    with_token = f"[web]\napi = true\nhost = '{host}'\ntoken = '{SECRET}'\n"
    assert not settings(tmp_path, with_token).web.is_loopback
    assert settings(tmp_path, f"[web]\nhost = '{host}'\n").web.host == host
    line = refused(tmp_path, "api = true", GOCLAW_WEB__HOST=host)
    assert line.startswith(f"environment variable GOCLAW_WEB__HOST: web.host = '{host}': ")


def test_the_token_is_found_wherever_it_stands(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(f"{SECRET}-in-file\n")
    env = {"MY_TOKEN": f" {SECRET}-in-env "}
    lines = (f"token = '{SECRET}'", "token_file = 't'", "token_env = 'MY_TOKEN'")
    found = [web_token(settings(tmp_path, f"[web]\n{line}\n"), env) for line in lines]
    found.append(web_token(settings(tmp_path, "", GOCLAW_WEB__TOKEN=f"{SECRET}-too"), env))
    shown = [each.get_secret_value() for each in found if each is not None]
    assert shown == [SECRET, f"{SECRET}-in-file", f"{SECRET}-in-env", f"{SECRET}-too"]


@pytest.mark.parametrize(("line", "expected"), [
    ("token_env = 'NOT_SET'", "web.token_env = 'NOT_SET': this variable is not set"),
    ("token_file = 'none'", "cannot be read: No such file"),
    ("token_file = 'empty'", "the file is empty"),
    ("token_file = 'binary'", "cannot be read: not UTF-8 text"),
    ("token_file = 'short'", "the token must be 16 to 512 printable ASCII characters"),
    ("token_file = 'long'", "the token must be 16 to 512 printable ASCII characters"),
    ("token_env = 'SHORT'",
     "web.token_env = 'SHORT': the token must be 16 to 512 printable ASCII characters"),
])  # fmt: skip
def test_a_token_that_is_missing_or_weak_is_told(tmp_path: Path, line: str, expected: str) -> None:
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "short").write_text("tooshort")
    (tmp_path / "long").write_text(f"{SECRET}\n" * 2)
    got = settings(tmp_path, f"[web]\n{line}\n")
    with pytest.raises(SettingError) as caught:
        web_token(got, {"SHORT": "tooshort"})
    assert expected in str(caught.value)
    assert "tooshort" not in str(caught.value)
    assert SECRET not in str(caught.value)


def test_there_is_one_token_and_it_is_shown_nowhere(tmp_path: Path) -> None:
    line = refused(tmp_path, f"token = '{SECRET}'\ntoken_env = 'T'")
    assert "web.token_env = 'T': token is also set" in line
    assert SECRET not in repr(settings(tmp_path, f"[web]\ntoken = '{SECRET}'\n"))
    assert SECRET not in refused(tmp_path, f"tokn = '{SECRET}'")
    assert SECRET not in refused(tmp_path, f"token = '{SECRET} '")


def test_the_names_of_the_server_are_compared_in_small_letters(tmp_path: Path) -> None:
    """SPEC SEC-1: the Host header."""
    text = "[web]\nhosts = ['Bot.Example.org', '[2001:DB8::1]', 'box', 'BOX']\n"
    assert settings(tmp_path, text).web.hosts == ("bot.example.org", "2001:db8::1", "box")
    env = settings(tmp_path, "", GOCLAW_WEB__HOSTS="a.example.org, b").web.hosts
    assert env == ("a.example.org", "b")


PROXY = "[web]\ntoken = '0123456789abcdef-secret'\n[web.proxy]\n"


def test_a_trusted_proxy_is_read_from_file_and_environment(tmp_path: Path) -> None:
    """SPEC SEC-10."""
    text = f"{PROXY}addresses = ['10.0.0.7', '2001:db8::/32']\nadmin_groups = ['ops', 'night desk']"
    proxy = settings(tmp_path, text, GOCLAW_WEB__PROXY__DEFAULT_ROLE="viewer").web.proxy
    assert proxy.addresses == ("10.0.0.7", "2001:db8::/32")
    assert (proxy.user_header, proxy.groups_header) == ("Remote-User", "Remote-Groups")
    assert (proxy.admin_groups, proxy.default_role) == (("ops", "night desk"), AccessRole.VIEWER)
    assert not proxy.viewers_read_text
    assert settings(tmp_path, "").web.proxy.addresses == ()


@pytest.mark.parametrize(("text", "expected"), [
    ("addresses = ['0.0.0.0/0']", "must be addresses or networks of proxies"),
    ("addresses = ['::/0']", "must be addresses or networks of proxies"),
    ("addresses = ['10.0.0.7/8']", "must be addresses or networks of proxies"),
    ("addresses = ['proxy.example.org']", "must be addresses or networks of proxies"),
    ("addresses = ['']", "must be a list of texts"),
    ("user_header = 'Remote User'", "must be the name of an HTTP header"),
    ("default_role = 'root'", "must be 'viewer', 'operator' or 'admin'"),
    ("admin_groups = ['ops']", "web.proxy.addresses = not set: [web.proxy] needs it"),
    ("addresses = ['10.0.0.7']", "nobody would have a role: set admin_groups"),
    ("sign_out_url = 'javascript:x'", "must be an address that starts with http:// or https://"),
    ("adresses = []", "did you mean addresses?"),
])  # fmt: skip
def test_a_proxy_that_would_sign_in_nobody_or_everybody_is_told(
    tmp_path: Path, text: str, expected: str
) -> None:
    assert expected in refused_by(tmp_path, f"{PROXY}{text}\n")


def test_a_proxy_needs_a_token_besides(tmp_path: Path) -> None:
    """Without one whoever reaches the gateway directly would need nothing."""
    text = "[web.proxy]\naddresses = ['10.0.0.7']\nadmin_groups = ['ops']\n"
    assert "set web.token_file" in refused_by(tmp_path, text)


def openid(**changed: str) -> str:
    """Settings of a provider; "" leaves a key out."""
    keys = {
        "issuer": "'https://sso.example.org/realms/main'",
        "client_id": "'goclaw'",
        "admin_groups": "['ops']",
        **changed,
    }
    lines = "".join(f"{key} = {value}\n" for key, value in keys.items() if value)
    top = f"[web]\ntoken = '{SECRET}'\npublic_url = 'https://bot.example.org'\n"
    return f"{top}[web.openid]\n{lines}"


def test_a_provider_is_read_with_its_secret(tmp_path: Path) -> None:
    """SPEC SEC-2, SEC-10: from a file or a variable, as other secrets; shown nowhere."""
    (tmp_path / "s").write_text("of-the-client-1\n")
    env = {"IT": "of-the-client-2"}
    for line, expected in (
        ({"client_secret_file": "'s'"}, "of-the-client-1"),
        ({"client_secret_env": "'IT'"}, "of-the-client-2"),
        ({"client_secret": "'of-the-client-3'"}, "of-the-client-3"),
    ):
        got = settings(tmp_path, openid(**line))
        secret = openid_secret(got, env)
        assert secret is not None
        assert secret.get_secret_value() == expected
        assert expected in known_secrets(got, env)
        assert expected not in repr(got)
        assert (got.web.openid.name, got.web.openid.groups_claim) == ("OpenID", "groups")
    assert openid_secret(settings(tmp_path, openid()), {}) is None


@pytest.mark.parametrize(("changed", "expected"), [
    ({"issuer": ""}, "web.openid.issuer = not set: [web.openid] needs it"),
    ({"client_id": ""}, "web.openid.client_id = not set: register this gateway"),
    ({"issuer": "'http://sso.example.org'"}, "must begin with https://"),
    ({"issuer": "'sso.example.org'"}, "must be an address that starts with http:// or https://"),
    ({"admin_groups": ""}, "nobody would have a role"),
    ({"client_secret": "'a'", "client_secret_env": "'IT'"}, "client_secret is also set"),
    ({"client_secret": "'of the client'"}, "web.openid.client_secret = [hidden]: must be"),
    ({"name": "'<b>'"}, "must be a name of up to 40 letters"),
    ({"group_claim": "'groups'"}, "did you mean groups_claim?"),
])  # fmt: skip
def test_a_provider_that_cannot_sign_in_anybody_is_told(
    tmp_path: Path, changed: dict[str, str], expected: str
) -> None:
    assert expected in refused_by(tmp_path, openid(**changed))


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:8080", "http://localhost:8080/realms/x"])
def test_on_this_machine_a_provider_needs_no_tls(tmp_path: Path, issuer: str) -> None:
    assert settings(tmp_path, openid(issuer=f"'{issuer}'")).web.openid.issuer == issuer


def test_a_provider_needs_an_address_to_lead_back_to(tmp_path: Path) -> None:
    text = openid().replace("public_url = 'https://bot.example.org'\n", "")
    assert "web.public_url = not set: [web.openid] needs it" in refused_by(tmp_path, text)
    text = openid().replace(f"token = '{SECRET}'\n", "")
    assert "set web.token_file" in refused_by(tmp_path, text)
