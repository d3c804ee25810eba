"""docs/guide/deployment.md: what it tells people to type works on what is there.

That its commands are commands and its links lead somewhere is what tests/guides holds.
"""

from __future__ import annotations

import re
import shlex
import stat
import subprocess
from pathlib import Path

from goclaw_py.config import load
from tests.deploy.places import COMPOSE, DOCKERFILE, ROOT, document, unit
from tests.guides.reading import typed

FILE = ROOT / "docs" / "guide" / "deployment.md"
GUIDE = FILE.read_text("utf-8")
BLOCKS: list[str] = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines()]


def test_every_file_that_the_guide_names_is_there() -> None:
    named = set(re.findall(r"\bdeploy/[\w./-]*[\w/]", GUIDE))
    assert len(named) > 8
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_docker_alone_shows_a_dashboard_to_this_machine_with_a_token_only() -> None:
    """SPEC SEC-1: inside of a container loopback is the container's own."""
    (line,) = [one for one in typed([FILE]) if one.words[:2] == ("docker", "run")]
    options = list(zip(line.words, line.words[1:], strict=False))
    given = [value for option, value in options if option == "--env"]
    env = dict(one.split("=") for one in given if "=" in one)
    assert ("--publish", "127.0.0.1:8420:8420") in options
    assert "GOCLAW_WEB__TOKEN" in given
    with_token = {**env, "GOCLAW_WEB__TOKEN": "0123456789abcdef" * 4}
    settings = load(env={"GOCLAW_HOME": "/nowhere", **with_token})
    assert (settings.web.host, settings.web.port) == ("0.0.0.0", 8420)
    assert ("--stop-timeout", "75") in options


def test_the_secrets_of_compose_are_made_as_it_needs_them(tmp_path: Path) -> None:
    """SPEC SEC-2: the folder is closed; the file with the password too, as its readers want."""
    (block,) = [block for block in BLOCKS if "mkdir" in block]
    lines = [line for line in block.splitlines() if "secrets" in line]
    script = "\n".join(lines).replace("sudo chown", ": chown").replace("sudo ", "")
    subprocess.run(["sh", "-euc", script], cwd=tmp_path, timeout=30, check=True)
    folder = tmp_path / "secrets"
    wanted = {Path(one["file"]).name for one in document(COMPOSE)["secrets"].values()}
    assert {path.name for path in folder.iterdir()} == wanted
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {name: 0o400 if name == "pgpass" else 0o444 for name in wanted}
    password = (folder / "postgres-password").read_text().strip()
    assert (folder / "pgpass").read_text() == f"*:*:goclaw:goclaw:{password}\n"
    assert "sudo chown 10001 secrets/pgpass" in block
    assert "--uid 10001" in DOCKERFILE.read_text("utf-8")


def test_the_unit_finds_what_the_guide_installs() -> None:
    installed = {shlex.split(line, comments=True)[-1] for line in LINES if "install " in line}
    needed = {line.partition(":")[2] for line in unit("LoadCredential")}
    assert needed | {"/etc/goclaw/goclaw.toml"} <= installed
    assert f"sudo python3 -m venv {Path(unit('ExecStart')[0].split()[0]).parents[1]}" in LINES
