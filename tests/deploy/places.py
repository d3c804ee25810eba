"""Where the files of deploy/ are, and the programs that check them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools.debian_tools import Missing, path_of

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
DOCKERFILE = DEPLOY / "Dockerfile"
UNIT = DEPLOY / "goclaw.service"
KUBERNETES = DEPLOY / "kubernetes"
CADDYFILE = DEPLOY / "caddy" / "Caddyfile"
PROMETHEUS = DEPLOY / "prometheus"
DASHBOARD = DEPLOY / "grafana" / "goclaw.json"


def program(name: str) -> Path:
    """A program that `make tools` installs; without it the test fails, and says so."""
    try:
        return path_of(name)
    except Missing as missing:
        pytest.fail(str(missing), pytrace=False)


def run(
    *command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """The exit code of a program, and all that it said."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@cache
def document(file: Path) -> Any:
    """What a file of YAML says; not to be changed."""
    return yaml.safe_load(file.read_text("utf-8"))


def service(name: str) -> Any:
    """One service of compose.yaml."""
    return document(COMPOSE)["services"][name]


def unit(key: str) -> list[str]:
    """What a key of the systemd unit is set to, each time it is."""
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text("utf-8"), re.MULTILINE)


def manifest(kind: str) -> Any:
    """The one object of a kind among the manifests, the examples included."""
    (found,) = [one for _, one in manifests() if one["kind"] == kind]
    return found


def manifests() -> list[tuple[Path, Any]]:
    """All objects, each with its file."""
    return [(path, document(path)) for path in sorted(KUBERNETES.iterdir())]


def pod() -> Any:
    """What the Deployment makes pods of."""
    return manifest("Deployment")["spec"]["template"]["spec"]


def container() -> Any:
    """The only container of a pod."""
    (found,) = pod()["containers"]
    return found
