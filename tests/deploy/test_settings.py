"""What deploy/ sets is what a gateway understands: it would start (SPEC OPS-7, SEC-1, SEC-2)."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from goclaw_py.cli import composition
from goclaw_py.config import Settings, load, web_token
from goclaw_py.core.errors import SettingError, StoreUnavailable
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.store.postgres import PostgresStore
from goclaw_py.web.guard import Guard
from goclaw_py.web.sign_ins import SignIns
from tests.deploy.places import (
    CADDYFILE,
    COMPOSE,
    DEPLOY,
    PROMETHEUS,
    container,
    document,
    manifest,
    pod,
    service,
    unit,
)

TOKEN = "0123456789abcdef" * 4
SECRETS = {"telegram-token": "123456789:AA-for-tests-only", "web-token": TOKEN}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A folder with what the operator fills in."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    for name, value in SECRETS.items():
        (folder / name).write_text(value + "\n")
    passfile = folder / "pgpass"
    passfile.write_text("*:*:goclaw:goclaw:for-tests-only\n")
    passfile.chmod(0o400)
    return folder


def loaded(text: str, env: Mapping[str, str], secrets: Path, where: str) -> Settings:
    """The settings of a gateway, with its folder of secrets replaced by ours."""
    assert where in text or any(where in value for value in env.values())
    file = secrets.parent / "goclaw.toml"
    file.write_text(text.replace(where, str(secrets)))
    env = {name: value.replace(where, str(secrets)) for name, value in env.items()}
    return load(file, env | {"GOCLAW_HOME": "/var/lib/goclaw"})


def of_compose(secrets: Path) -> Settings:
    env = dict(service("goclaw")["environment"])
    source, inside, _ = service("goclaw")["volumes"][0].split(":")
    assert inside == env.pop("GOCLAW_CONFIG")
    text = (DEPLOY / source).read_text("utf-8")
    return loaded(text, env, secrets, "/run/secrets")


def of_systemd(secrets: Path) -> Settings:
    words = [word for line in unit("Environment") for word in shlex.split(line)]
    env = dict(word.split("=", 1) for word in words)
    assert env.pop("GOCLAW_CONFIG") == "/etc/goclaw/goclaw.toml"
    assert env.pop("GOCLAW_HOME") == f"/var/lib/{unit('StateDirectory')[0]}"
    given = {line.partition(":")[0] for line in unit("LoadCredential")}
    used = {found for value in env.values() for found in re.findall(r"%d/([\w-]+)", value)}
    assert used == given
    return loaded((DEPLOY / "goclaw.toml").read_text("utf-8"), env, secrets, "%d")


def of_kubernetes(secrets: Path) -> Settings:
    secret = manifest("Secret")["stringData"]
    env = {}
    for variable in container()["env"]:
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        env[variable["name"]] = secret[reference["key"]] if reference else variable["value"]
    assert env.pop("GOCLAW_CONFIG") == "/etc/goclaw/goclaw.toml"
    text = manifest("ConfigMap")["data"]["goclaw.toml"]
    return loaded(text, env, secrets, "/run/secrets/goclaw")


EVERYWHERE = pytest.mark.parametrize("of", [of_compose, of_systemd, of_kubernetes])


@EVERYWHERE
async def test_a_gateway_starts_with_these_settings_and_is_open_to_nobody_without_token(
    of: Any, secrets: Path
) -> None:
    """SPEC SEC-1, SEC-2: behind a proxy loopback is no protection; no secret is committed."""
    settings = of(secrets)
    assert settings.web.api
    await composition.check_parts(settings)
    token = web_token(settings, {})
    assert token is not None
    assert token.get_secret_value() == TOKEN
    assert settings.web.token is None
    assert set(settings.channels["telegram"].options) <= {"token_file", "webhook_url"}


def refusal(settings: Settings, host: str, path: str, token: str = "") -> int | None:
    """How a request over TCP is refused; None if it is served."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None: ...

    web = settings.web
    sign_ins = SignIns(None, TOKEN, lambda: 0.0)
    guard = Guard(app, address=web.host, hosts=web.hosts, sign_ins=sign_ins)
    headers = [(b"host", host.encode())]
    if token:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    scope = {"type": "http", "method": "GET", "path": path, "headers": headers}
    found = asyncio.run(guard.refusal(scope))
    return None if found is None else found.status


def test_probes_of_kubernetes_are_served_without_a_token(secrets: Path) -> None:
    settings = of_kubernetes(secrets)
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = container()[name]["httpGet"]
        assert probe["port"] == "http"
        assert refusal(settings, "10.1.2.3:8420", probe["path"]) is None
    assert container()["ports"] == [{"name": "http", "containerPort": settings.web.port}]


@pytest.mark.parametrize(
    ("of", "host"), [(of_compose, "goclaw:8420"), (of_systemd, "127.0.0.1:8420")]
)
def test_prometheus_may_read_with_the_token_and_not_without(
    of: Any, host: str, secrets: Path
) -> None:
    (job,) = document(PROMETHEUS / "prometheus.yml")["scrape_configs"]
    assert "authorization" in job
    assert host in (PROMETHEUS / "prometheus.yml").read_text("utf-8")
    settings = of(secrets)
    assert refusal(settings, host, "/metrics", TOKEN) is None
    assert refusal(settings, host, "/metrics") == 401


def test_the_name_that_a_proxy_is_called_by_is_one_of_the_gateway(secrets: Path) -> None:
    (site,) = re.findall(r"\{\$GOCLAW_SITE:([\w.-]+)\}", CADDYFILE.read_text("utf-8"))
    for rule in manifest("Ingress")["spec"]["rules"]:
        assert refusal(of_kubernetes(secrets), rule["host"], "/", TOKEN) is None
    for of in (of_compose, of_systemd):
        assert refusal(of(secrets), site, "/", TOKEN) is None
    assert refusal(of_compose(secrets), "other.example.org", "/", TOKEN) == 421


def test_each_node_of_kubernetes_has_a_state_folder_of_its_own(secrets: Path) -> None:
    """The workspaces are shared, the sockets are not."""
    settings = of_kubernetes(secrets)
    mounts = {mount["mountPath"]: mount["name"] for mount in container()["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    assert "emptyDir" in volumes[mounts[str(settings.state_folder)]]
    home = volumes[mounts["/var/lib/goclaw"]]["persistentVolumeClaim"]["claimName"]
    assert home == manifest("PersistentVolumeClaim")["metadata"]["name"]
    assert settings.workspace(MAIN_AGENT).is_relative_to("/var/lib/goclaw")


def test_kubernetes_puts_no_variables_of_services_into_the_environment() -> None:
    """They begin with GOCLAW_ as ours do, and a gateway refuses what it does not know."""
    assert manifest("Service")["metadata"]["name"] == "goclaw"
    assert pod()["enableServiceLinks"] is False
    with pytest.raises(SettingError, match="GOCLAW_PORT"):
        load(env={"GOCLAW_HOME": "/nowhere", "GOCLAW_PORT": "tcp://10.0.0.1:80"})


def test_every_secret_of_compose_is_a_file_that_git_never_takes() -> None:
    files = {secret["file"] for secret in document(COMPOSE)["secrets"].values()}
    assert {Path(file).parent for file in files} == {Path("secrets")}
    ignored = (DEPLOY / ".gitignore").read_text("utf-8").split()
    assert "secrets/" in ignored


@pytest.mark.real_time
async def test_the_database_of_compose_is_asked_with_the_password_of_the_file(
    tmp_path: Path,
) -> None:
    """The address names a file instead of holding the password."""
    url = service("goclaw")["environment"]["GOCLAW_DATABASE_URL"]
    heard: list[bytes] = []

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def body() -> bytes:
            return await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)

        if (await body())[:4] == (80877103).to_bytes(4):  # asks for TLS first
            writer.write(b"N")
            await body()
        writer.write(b"R" + (8).to_bytes(4) + (3).to_bytes(4))  # the password, please
        assert await reader.readexactly(1) == b"p"
        heard.append(await body())
        writer.close()

    async with await asyncio.start_server(server, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        passfile = tmp_path / "pgpass"
        passfile.write_text("*:*:goclaw:goclaw:from-the-file\n")
        passfile.chmod(0o400)
        url = url.replace("@postgres/", f"@127.0.0.1:{port}/")
        url = url.replace("/run/secrets/pgpass", str(passfile))
        with pytest.raises(StoreUnavailable):
            await PostgresStore.open(url)
    assert heard == [b"from-the-file\0"]
