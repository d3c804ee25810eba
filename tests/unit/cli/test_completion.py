"""Shell completion: the scripts, and names that a gateway knows (SPEC OPS-1)."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand

from goclaw_py.cli import completion
from goclaw_py.core.ids import SessionKey
from goclaw_py.web.sockets import listen_unix, socket_path
from tests.support.apps import lend_api
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.cli.processes import GOCLAW
from tests.unit.web import fakes
from tests.unit.web.fake_terminals import FakeTerminals

pytestmark = pytest.mark.real_time


def complete(*words: str, shell: str = "bash") -> subprocess.CompletedProcess[str]:
    """What a shell is answered to these words, the last of which is not complete."""
    line = " ".join(["goclaw", *words])
    env = {
        "_GOCLAW_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words)),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    env = os.environ | env
    return subprocess.run(GOCLAW, env=env, capture_output=True, text=True, timeout=60, check=False)


def offered(*words: str) -> list[str]:
    got = complete(*words)
    assert got.stderr == ""
    return got.stdout.split()


def offered_at_last(*words: str) -> list[str]:
    """On a slow machine the answer may come too late; a person presses Tab again then."""
    for _ in range(20):
        if names := offered(*words):
            return names
    return []


@pytest.mark.parametrize(("shell", "file"), [
    ("bash", ".bash_completions/goclaw.sh"),
    ("zsh", ".zfunc/_goclaw"),
    ("fish", ".config/fish/completions/goclaw.fish"),
])  # fmt: skip
@pytest.mark.slow
def test_a_shell_is_set_up(home: Path, tmp_path: Path, shell: str, file: str) -> None:
    # What typer has for its own tests: else it looks at the processes above this one.
    env = os.environ | {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [*GOCLAW, "--install-completion", shell]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "_GOCLAW_COMPLETE" in (tmp_path / file).read_text()
    # The script can be had alone, too.
    env = os.environ | {"_GOCLAW_COMPLETE": f"source_{shell}"}
    script = subprocess.run(GOCLAW, env=env, capture_output=True, text=True, check=True).stdout
    assert "_GOCLAW_COMPLETE" in script
    assert "goclaw" in script
    if shell == "bash":
        command = ["bash", "--norc", "-c", f"{script}\ncomplete -p goclaw"]
        got = subprocess.run(command, capture_output=True, text=True, check=True)
        assert got.stdout.strip().endswith("goclaw")
    got = complete("deliv", shell=shell)
    assert "deliveries" in got.stdout
    assert "jobs" not in got.stdout
    # Former names are offered no more.
    assert "outbox" not in complete("outb", shell=shell).stdout


def test_names_come_from_the_gateway(gateway: ThreadGateway) -> None:
    assert offered_at_last("runs", "show", "0190-a") == [fakes.RUN_ID]
    assert offered_at_last("queue", "agent:main:console") == [fakes.SESSION]
    assert "local" in offered_at_last("queue", "''")  # the end of its key


@pytest.mark.parametrize(("complete", "names"), [
    (completion.sessions, ["Ann", "100", "agent:main:telegram:direct:100"]),
    (completion.runs, ["0190-aaaa"]),
    (completion.jobs, ["standup"]),
    (completion.nodes, ["01a20492-c3f7-7c11-8a22-5d1f0e9b7c3a"]),
])  # fmt: skip
def test_names_are_read_from_the_answers_of_the_api(
    complete: Callable[[typer.Context, str], list[str]],
    names: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The examples of the description are whole answers of a gateway."""
    paths = lend_api(fakes.FakeControl(), FakeTerminals()).openapi()["paths"]

    def example(ctx: typer.Context, path: str, body: object = None) -> object:
        method = "get" if body is None else "post"
        answer = paths[path.partition("?")[0]][method]["responses"]["200"]
        return answer["content"]["application/json"]["example"]

    monkeypatch.setattr(completion, "_ask", example)
    context = typer.Context(TyperCommand("x"))
    for name in names:
        assert name in complete(context, name[:1])
    assert complete(context, "no such") == []


@pytest.mark.slow
def test_options_and_names_of_the_settings_need_no_gateway(home: Path, tmp_path: Path) -> None:
    (home / "goclaw.toml").write_text("[agents.helper]\n[lanes]\nfast = 1\n")
    assert offered("runs", "list", "--wa") == ["--watch"]
    assert offered("heartbeat", "why", "h") == ["helper"]
    assert offered("lanes", "set", "f") == ["fast"]
    assert offered("config", "show", "la") == ["lanes"]
    assert offered("config", "show", "lanes.fast.si") == ["lanes.fast.size"]
    assert offered("config", "set", "lanes.fa") == ["lanes.fast.size"]
    assert offered("config", "set", "database") == []
    assert offered("jobs", "list", "--state", "pa") == ["paused"]
    assert offered("jobs", "add", "--tz", "Europe/Ber") == ["Europe/Berlin"]
    (tmp_path / "other.toml").write_text("[agents.elsewhere]\n")
    words = ("--config", str(tmp_path / "other.toml"), "heartbeat", "why", "e")
    assert offered(*words) == ["elsewhere"]


@pytest.mark.slow
def test_without_a_gateway_nothing_is_offered_and_nothing_is_said(home: Path) -> None:
    assert offered("runs", "show", "0") == []
    (home / "goclaw.toml").write_text("[lanes\n")  # wrong settings are no error for a shell
    for words in (("runs", "show", "0"), ("heartbeat", "why", "m")):
        assert offered(*words) == []


@contextmanager
def odd_gateway(home: Path, answer: bytes | None) -> Iterator[None]:
    """One that answers with these bytes, or keeps silent."""
    listener = listen_unix(socket_path(home / "state"))
    listener.socket.settimeout(None)
    ended = threading.Event()

    def serve() -> None:
        with listener.socket.accept()[0] as connection:
            connection.recv(4096)
            if answer is None:
                ended.wait(30)
            else:
                connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(10)
        listener.close()


@pytest.mark.parametrize("answer", [
    None,
    b"",
    b"x",
    b"HTTP/1.1 500 no\r\n\r\n[]",
    b"HTTP/1.1 200 OK\r\n\r\n{",
    b'HTTP/1.1 200 OK\r\n\r\n{"id": 1}',
    b'HTTP/1.1 200 OK\r\n\r\n[1, {"id": 2}, {"id": null}]',
    b"\xff" * 100_000,
])  # fmt: skip
@pytest.mark.slow
def test_a_gateway_that_answers_badly_is_no_error(home: Path, answer: bytes | None) -> None:
    with odd_gateway(home, answer):
        assert offered("runs", "show", "0") == []


async def test_a_silent_gateway_is_waited_for_so_long_and_no_longer(home: Path) -> None:
    with odd_gateway(home, None):
        path = socket_path(home / "state")
        # Only its own limit can raise this: the other side keeps silent.
        with pytest.raises(TimeoutError):
            await completion._answer(str(path), "/api/runs")


@pytest.mark.parametrize(
    "name", ["$(rm -rf x)", "a b", "a;b", "'a", 'a"', "a`b`", "a\nb", "\x1b[2J", "-x", "", "a\\b"]
)
def test_what_a_shell_could_run_is_never_offered(name: str) -> None:
    """SPEC SEC-1: chats choose parts of keys of sessions, and shells evaluate what is offered."""
    assert completion._fitting([name, "good:1"], "") == ["good:1"]


def test_an_end_of_a_key_is_offered_only_where_it_is_unique() -> None:
    keys = ["agent:main:telegram:direct:12", "agent:main:telegram:direct:123", "agent:x:c:y"]
    assert [completion._end(key, keys) for key in keys] == [keys[0], "123", "y"]


def test_sessions_with_odd_keys_do_no_harm(goclaw: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = replace(fakes.FULL, key=SessionKey("agent:main:x:$(touch /tmp/x)"))
    monkeypatch.setattr(fakes, "FULL", evil)
    gateway = ThreadGateway(goclaw.home)
    with gateway.running():
        assert offered("queue", "agent") == []
