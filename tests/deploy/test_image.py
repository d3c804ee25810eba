"""The Dockerfile, as far as it can be judged without building it (SPEC OPS-7)."""

from __future__ import annotations

import json
import re
import shutil
import socket
import sys
import tempfile
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

import pytest

from goclaw_py.web.sockets import socket_path
from tests.deploy.commands import is_command
from tests.deploy.places import DEPLOY, DOCKERFILE, ROOT, run

PACKAGES = ("goclaw_py", "channels", "migrations")


def instructions(word: str) -> list[str]:
    """What stands behind each instruction of a kind, with continued lines joined."""
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text("utf-8"))
    return [found.strip() for found in re.findall(rf"^{word} (.*)$", text, re.MULTILINE)]


def test_the_linter_has_nothing_to_say_about_the_dockerfile() -> None:
    tool = Path(sys.executable).with_name("hadolint")
    assert run(tool, "--failure-threshold", "warning", DOCKERFILE) == (0, "")


def copied() -> list[str]:
    lines = [line.split() for line in instructions("COPY") if "--from" not in line]
    return [source for line in lines for source in line[:-1]]


def test_all_that_is_copied_is_there_and_sent_to_the_builder() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    assert allowed == set(copied())
    assert all((ROOT / name).exists() for name in allowed)
    again = [rule for rule in rules[1:] if not rule.startswith("!")]
    assert not any(fnmatch(name, rule) for name in allowed for rule in again)


def test_what_is_copied_makes_the_whole_product(tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    for name in copied():
        if (ROOT / name).is_dir():
            no_caches = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, context / name, ignore=no_caches)
        else:
            shutil.copy(ROOT / name, context)
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "out")
    code, output = run(*command, cwd=context)
    assert code == 0, output
    (wheel,) = (tmp_path / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    wanted = {
        path.relative_to(context).as_posix()
        for package in PACKAGES
        for path in (context / package).rglob("*")
        if path.is_file()
    }
    assert wanted - inside == set()
    assert "goclaw_py/HEARTBEAT.md.example" in inside


def test_the_image_has_a_python_that_the_package_takes() -> None:
    image, *stages = instructions("FROM")
    found = re.fullmatch(r"python:(\d\.\d+)-slim-\w+(@sha256:[0-9a-f]{64})? AS base", image)
    assert found
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"Programming Language :: Python :: {found[1]}" in project["classifiers"]
    assert stages == ["base AS build", "base"]


def test_every_installed_package_is_compared_with_its_hash() -> None:
    commands = [part for line in instructions("RUN") for part in line.split("&&")]
    installs = [part.strip() for part in commands if part.strip().startswith("pip ")]
    first, second = installs
    assert first.endswith("--require-hashes --no-deps --compile -r requirements.txt")
    assert second.endswith("--no-deps --no-build-isolation --compile .")


def test_the_gateway_gets_the_signal_and_is_nobody_in_particular() -> None:
    (entry,), (command,) = instructions("ENTRYPOINT"), instructions("CMD")
    words = [*json.loads(entry), *json.loads(command)]
    assert words[:3] == ["tini", "--", "goclaw"]
    assert is_command(words[3:])
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    assert instructions("USER") == ["10001:10001"]
    assert instructions("VOLUME") == ["/var/lib/goclaw"]


@contextmanager
def answering(status: int, home: Path) -> Iterator[None]:
    """A gateway whose /healthz answers so."""
    asked: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            asked.append(connection.recv(1000))
            connection.sendall(b"HTTP/1.1 %d Word\r\n\r\n" % status)

    path = socket_path(home / "state")
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        serving = threading.Thread(target=serve, args=(listener,))
        serving.start()
        yield
        serving.join()
    assert asked[0].startswith(b"GET /healthz HTTP/")


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder with a short name, as the path of a socket wants it."""
    with tempfile.TemporaryDirectory(prefix="goclaw-", dir="/tmp") as folder:
        yield Path(folder)


def health(**env: str) -> int:
    """The exit code of the image's health check."""
    (line,) = instructions("HEALTHCHECK")
    python, *rest = json.loads(line.partition("CMD ")[2])
    assert python == "python"
    return run(sys.executable, *rest, env=env)[0]


def test_the_health_check_believes_healthz_wherever_the_state_folder_is(home: Path) -> None:
    assert health(GOCLAW_HOME=str(home)) != 0, "nobody answers"
    with answering(503, home):
        assert health(GOCLAW_HOME=str(home)) != 0
    with answering(200, home):
        assert health(GOCLAW_HOME=str(home)) == 0
    with answering(200, home):
        assert health(GOCLAW_HOME="/nowhere", GOCLAW_STATE__FOLDER=str(home / "state")) == 0
