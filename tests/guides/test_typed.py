"""What documents tell people to type is understood by what they type it to."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.commands import commands_in, is_command, mistake_of
from tests.guides.reading import READ_BY_USERS, Block, Typed, blocks, commands, prose, typed
from tests.support.guides import ROOT

ALL = typed(READ_BY_USERS)
OF_OTHERS = frozenset(
    {
        "cat", "cd", "chmod", "cp", "curl", "docker", "echo", "export", "journalctl", "jq",
        "kubectl", "mkdir", "openssl", "pkill", "psql", "pytest", "python3", "source", "sudo",
    }
)  # fmt: skip
"""Programs that documents may name. Those of a block with another one need a test first."""


MANY = 50
"""Of the commands in texts of the gateway there are at least so many."""


def ours() -> list[tuple[Typed, list[str]]]:
    return [(one, words) for one in ALL if (words := one.ours) is not None]


@pytest.mark.parametrize(("line", "words"), ours(), ids=str)
def test_every_command_is_taken_by_the_command_line(line: Typed, words: list[str]) -> None:
    """All its names, options and arguments; nothing is carried out."""
    assert mistake_of(words) == "", line


def copied() -> Iterator[tuple[str, str]]:
    """The commands in texts of the gateway: those of cures and warnings, each with its place."""
    for file in sorted((ROOT / "goclaw_py").rglob("*.py")):
        if file.is_relative_to(ROOT / "goclaw_py" / "cli") or file.name == "command.py":
            continue
        source = file.read_text("utf-8")
        if "goclaw " not in source:
            continue
        tree = ast.parse(source)
        pieces = {id(one) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
                  for one in node.values}  # fmt: skip
        for node in ast.walk(tree):
            if not isinstance(node, ast.JoinedStr | ast.Constant):
                continue
            text = ""
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(one, "value", "") for one in node.values)
                text = "".join(one if isinstance(one, str) else "1" for one in parts)
            elif id(node) not in pieces:
                text = re.sub(r"\{\w+\}", "1", str(node.value))
            if re.match(r"goclaw [a-z]+( |$)(?!is ready)", text) and "\n" not in text:
                yield f"{file.name}:{node.lineno}", text


def test_a_command_of_a_warning_or_a_cure_works_as_it_stands() -> None:
    """SPEC OPS-4: nothing in it stands for something else."""
    found = list(copied())
    assert len(found) > MANY
    for place, command in found:
        words = shlex.split(command)[1:]
        assert is_command(words), place
        assert not any(re.fullmatch(r"[A-Z]+", word) for word in words), place


@pytest.mark.parametrize("file", READ_BY_USERS, ids=lambda file: file.name)
def test_every_command_that_the_text_names_is_one(file: Path) -> None:
    assert [words for words in commands_in(prose(file)) if not is_command(words)] == []


def test_only_programs_that_are_looked_at_here_are_typed() -> None:
    """A new one would go untested."""
    others = {one.words[0] for one in ALL if one.ours is None}
    strange = {name for name in others if "/" not in name} - OF_OTHERS - {"make", "pip", "pipx"}
    assert strange == set()


@pytest.mark.parametrize("line", [one for one in ALL if "pip" in one.words[:2]], ids=str)
def test_what_is_installed_is_the_checkout_with_its_versions(line: Typed) -> None:
    """The name on a package index is not ours to promise."""
    words = " ".join(line.words)
    assert "-c constraints.txt" in words
    assert re.search(r" \.(\[\w+\])?$", words)


@pytest.mark.parametrize("line", [one for one in ALL if one.words[0] in {"pipx", "uvx"}], ids=str)
def test_what_is_installed_without_a_checkout_is_the_wheel_of_this_release(line: Typed) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"{project['name']}-{project['version']}-py3-none-any.whl" in line.words


@pytest.mark.parametrize("line", [one for one in ALL if one.words[0] == "make"], ids=str)
def test_every_target_of_make_is_in_the_makefile(line: Typed) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert line.words[1] in targets


@pytest.mark.parametrize("block", blocks(READ_BY_USERS, "sh"), ids=str)
def test_the_shell_understands_every_block(block: Block) -> None:
    done = subprocess.run(
        ["sh", "-n"], input=block.text, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("line", "found"), [
    ("goclaw status", ["status"]),
    ("A=1 B=2 goclaw run --no-console  # why", ["run", "--no-console"]),
    ("echo hi | goclaw jobs list -- -", ["jobs", "list", "--", "-"]),
    ("docker compose exec goclaw goclaw status", ["status"]),
    ("sudo -u goclaw env A=/b /opt/goclaw/bin/goclaw status", ["status"]),
    ("kubectl exec deployment/goclaw -- goclaw status > file", ["status"]),
    ("uvx --from goclaw_py.whl goclaw run", ["run"]),
    ("docker compose restart goclaw", None),
    ("sudo systemctl enable --now goclaw", None),
    ("docker compose exec goclaw rm /var/lib/goclaw/a", None),
])  # fmt: skip
def test_our_command_is_found_where_it_stands(line: str, found: list[str] | None) -> None:
    last = [Typed(ROOT, words) for words in commands(line)][-1]
    assert last.ours == found


@pytest.mark.parametrize(("line", "mistake"), [
    ("status --json", ""),
    ("people approve CODE", ""),
    ("statuses", "statuses"),
    ("status --jsn", "--jsn"),
    ("people approve", "code"),
    ("lanes set main", "size"),
    ("lanes set main many", "many"),
    ("restore a.tar.gz b.tar.gz", "b.tar.gz"),
    ("jobs add x --at", "--at"),
])  # fmt: skip
def test_a_mistake_in_a_command_is_found(line: str, mistake: str) -> None:
    found = mistake_of(line.split())
    assert mistake.lower() in found.lower() if mistake else found == ""
