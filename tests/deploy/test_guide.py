"""docs/guide/deployment.md: what it tells people to type is there, and works on what is there."""

from __future__ import annotations

import re
import shlex
import stat
import subprocess
from pathlib import Path

import pytest

from tests.deploy.commands import commands_in, is_command
from tests.deploy.places import COMPOSE, DOCKERFILE, ROOT, document, unit

GUIDE = (ROOT / "docs" / "guide" / "deployment.md").read_text("utf-8")
BLOCKS: list[str] = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines()]


def ours() -> list[list[str]]:
    """The words behind each ``goclaw`` that is a command."""
    typed = re.findall(
        r"^(?:goclaw|docker compose exec goclaw goclaw|docker exec goclaw goclaw"
        r"|kubectl exec \S+ -- goclaw|sudo -u goclaw env .*/bin/goclaw) (.*)$",
        "\n".join(LINES),
        re.MULTILINE,
    )
    words = [[word for word in line.split() if not word.isupper()] for line in typed]
    return words + commands_in(GUIDE)


@pytest.mark.parametrize("words", ours(), ids=" ".join)
def test_every_command_of_the_guide_is_one(words: list[str]) -> None:
    assert is_command(words)


def test_the_guide_shows_commands_at_all() -> None:
    assert ["pairing", "approve"] in ours()
    assert ["migrate", "--status"] in ours()
    assert ours().count(["status"]) == 4


def test_every_file_that_the_guide_names_is_there() -> None:
    named = set(re.findall(r"\bdeploy/[\w./-]*[\w/]", GUIDE))
    assert len(named) > 8
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_link_of_the_guide_leads_somewhere() -> None:
    headings = {
        re.sub(r"\W+", "-", line.lower()) for line in re.findall("^##+ (.*)$", GUIDE, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", GUIDE):
        file, _, anchor = target.partition("#")
        assert anchor in headings if not file else (ROOT / "docs" / "guide" / file).exists(), target


def test_the_shell_understands_every_block() -> None:
    for block in BLOCKS:
        done = subprocess.run(
            ["sh", "-n"], input=block, text=True, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


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
