"""``goclaw service`` before programs that stand for systemd and launchd (SPEC OPS-10)."""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.cli.system import service as command
from goclaw_py.cli.system.user_services import RunCommand, user_service
from goclaw_py.config import load
from goclaw_py.core.errors import GoclawError
from tests.support.service_managers import ServiceManager, service_manager
from tests.unit.cli.conftest import Shell, ThreadGateway

UNIT = Path(__file__).parents[3] / "deploy" / "goclaw.service"
INSTALLED = [
    "systemctl --user show-environment",
    "systemctl --user daemon-reload",
    "systemctl --user enable goclaw.service",
    "systemctl --user restart goclaw.service",
]


def at_home(monkeypatch: pytest.MonkeyPatch, home: Path, manager: ServiceManager) -> ServiceManager:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{manager.folder}{os.pathsep}{os.environ['PATH']}")
    return manager


@pytest.fixture
def systemctl(home: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceManager:
    monkeypatch.setattr(sys, "platform", "linux")
    return at_home(monkeypatch, home, service_manager(home / "bin"))


@pytest.fixture
def launchctl(home: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceManager:
    monkeypatch.setattr(sys, "platform", "darwin")
    return at_home(monkeypatch, home, service_manager(home / "bin", "launchctl"))


def values(unit: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", unit, re.MULTILINE)


def test_a_user_unit_is_installed_and_removed(goclaw: Shell, systemctl: ServiceManager) -> None:
    file = goclaw.home / ".config" / "systemd" / "user" / "goclaw.service"
    got = goclaw("service", "install")
    assert (got.code, got.err) == (0, "")
    assert got.out.startswith(f"installed {file}\n")
    assert "loginctl enable-linger" in got.out
    assert systemctl.calls == INSTALLED
    assert file.stat().st_mode & 0o777 == 0o600
    systemctl.says("active")
    assert goclaw("service", "status").code == 0
    systemctl.fails_at("systemctl --user is-active goclaw.service")
    stopped = goclaw("service", "status")
    assert (stopped.code, stopped.out.splitlines()[0].split()) == (1, ["service", "not", "running"])
    assert goclaw("service", "uninstall").out == f"removed {file}\n"
    assert not file.exists()
    assert systemctl.calls[-2:] == [
        "systemctl --user disable --now goclaw.service",
        "systemctl --user daemon-reload",
    ]
    systemctl.fails_at()
    gone = goclaw("service", "status")
    assert (gone.code, "not installed" in gone.out) == (1, True)
    assert goclaw("service", "uninstall").code == 1


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_a_unit_that_somebody_else_has_written_stays(
    goclaw: Shell, systemctl: ServiceManager, action: str
) -> None:
    file = goclaw.home / ".config" / "systemd" / "user" / "goclaw.service"
    file.parent.mkdir(parents=True)
    file.write_text("[Service]\nExecStart=/opt/goclaw/bin/goclaw run\n")
    got = goclaw("service", action)
    assert (got.code, systemctl.calls) == (1, [])
    assert f"{file} was not written by goclaw service install; remove or rename it first" in got.err
    assert file.read_text().startswith("[Service]")


def test_the_unit_is_that_of_deploy_as_far_as_it_can_be(
    goclaw: Shell, systemctl: ServiceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = goclaw.home / "a b" / '50%"$.toml'
    settings.parent.mkdir()
    settings.write_text("[shutdown]\nwait = '10m'\n")
    monkeypatch.setenv("GOCLAW_CONFIG", str(settings))
    assert goclaw("service", "install").code == 0
    unit = next(goclaw.home.rglob("goclaw.service")).read_text()
    shipped = UNIT.read_text("utf-8")
    same = "Description Type WatchdogSec TimeoutStartSec Restart RestartSec KillMode UMask"
    for key in (*same.split(), "RestartPreventExitStatus"):
        assert values(unit, key) == values(shipped, key) != []
    # SPEC OPS-7: never less than shutdown.wait + cancel_grace + 15 s.
    assert values(unit, "TimeoutStopSec") == ["625"]
    (start,) = values(unit, "ExecStart")
    assert shlex.split(start)[1:] == ["-P", "-m", "goclaw_py", "run", "--no-console"]
    assert values(unit, "Environment")[0] == f'"GOCLAW_HOME={goclaw.home}"'
    assert values(unit, "Environment")[2].endswith('/a b/50%%\\"$.toml"')


def test_a_dry_run_shows_everything_and_changes_nothing(
    goclaw: Shell, systemctl: ServiceManager
) -> None:
    got = goclaw("service", "install", "--dry-run")
    file = goclaw.home / ".config/systemd/user/goclaw.service"
    assert got.out.startswith(f"write {file}:\n# Written by goclaw service install.\n")
    assert [f"run {call}" for call in INSTALLED[1:]] == got.out.splitlines()[-3:]
    first, *rest = goclaw.data("service", "install", "--dry-run")
    assert (first["write"], [step["run"] for step in rest]) == (str(file), INSTALLED[1:])
    assert systemctl.calls == []
    assert not file.exists()
    assert goclaw.data("service", "install")[0] == first
    before = systemctl.calls
    steps = goclaw("service", "uninstall", "--dry-run").out.splitlines()
    assert steps[1] == f"delete {file}"
    assert (systemctl.calls, file.exists()) == (before, True)


def test_without_a_service_manager_nothing_is_written(
    goclaw: Shell, systemctl: ServiceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemctl.fails_at("systemctl --user show-environment")
    refused = goclaw("service", "install")
    assert refused.code == 1
    assert "systemd cannot be reached for this user (refused: --user" in refused.err
    monkeypatch.setenv("PATH", "/nowhere")
    missing = goclaw("service", "install")
    assert (missing.code, "systemctl: No such file" in missing.err) == (1, True)
    assert goclaw("service", "status").code == 1
    assert not list(goclaw.home.rglob("goclaw.service"))


def test_a_failed_start_says_where_the_reason_is(goclaw: Shell, systemctl: ServiceManager) -> None:
    systemctl.fails_at("systemctl --user restart goclaw.service")
    got = goclaw("service", "install")
    assert got.code == 1
    assert "restart goclaw.service failed: refused: " in got.err
    assert "journalctl --user --unit goclaw" in got.err


def test_what_only_this_terminal_knows_is_reported(
    goclaw: Shell, systemctl: ServiceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOCLAW_TELEGRAM_TOKEN", "123456789:AAbbCCddEEffGGhhIIjj")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not used")
    (goclaw.home / "goclaw.toml").write_text('[agents.main]\nmodel = "openai:gpt-4o"\n')
    got = goclaw("service", "install")
    assert got.code == 0
    assert "of this terminal: GOCLAW_TELEGRAM_TOKEN, OPENAI_API_KEY;" in got.err
    (goclaw.home / "key").write_text("sk-0123456789")
    agent = '[agents.main]\nmodel = "openai:gpt-4o"\napi_key_file = "key"\n'
    (goclaw.home / "goclaw.toml").write_text(agent)
    assert "of this terminal: GOCLAW_TELEGRAM_TOKEN;" in goclaw("service", "install").err


def test_a_gateway_that_runs_already_is_in_the_way(
    goclaw: Shell, gateway: ThreadGateway, systemctl: ServiceManager
) -> None:
    got = goclaw("service", "install")
    assert (got.code, "a gateway is already running" in got.err) == (1, True)
    assert systemctl.calls == []


def test_a_launch_agent_is_installed_and_removed(goclaw: Shell, launchctl: ServiceManager) -> None:
    domain, label = f"gui/{os.getuid()}", "org.goclaw.gateway"
    file = goclaw.home / "Library" / "LaunchAgents" / f"{label}.plist"
    launchctl.fails_at(f"launchctl bootout {domain}/{label}")  # nothing is loaded yet
    assert goclaw("service", "install").code == 0
    assert launchctl.calls == [
        f"launchctl print {domain}",
        f"launchctl bootout {domain}/{label}",
        f"launchctl bootstrap {domain} {file}",
    ]
    plist = plistlib.loads(file.read_bytes())
    assert plist["ProgramArguments"][1:] == ["-P", "-m", "goclaw_py", "run", "--no-console"]
    assert plist["EnvironmentVariables"]["GOCLAW_HOME"] == str(goclaw.home)
    assert (plist["ExitTimeOut"], plist["KeepAlive"]) == (75, {"SuccessfulExit": False})
    assert goclaw("service", "status").code == 1
    launchctl.says("\tstate = running")
    assert goclaw.data("service", "status") == {
        "manager": "launchd",
        "file": str(file),
        "is_installed": True,
        "is_running": True,
    }
    assert goclaw("service", "uninstall").code == 0
    assert not file.exists()


def test_a_path_that_no_file_of_systemd_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(env={"GOCLAW_HOME": str(tmp_path)})
    with pytest.raises(GoclawError, match="no service can be installed"):
        user_service(settings, {"HOME": "/h", "PATH": "/a\nExecStart=/b"}, "linux", 1)
    monkeypatch.setattr(sys, "executable", '/the "best" venv/python')
    with pytest.raises(GoclawError, match=r"systemd starts no program .*: .the \"best\" venv"):
        user_service(settings, {"HOME": "/h"}, "linux", 1)
    monkeypatch.undo()
    one = user_service(settings, {"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "linux", 1)
    assert one.file == Path("/x/systemd/user/goclaw.service")


def test_a_command_that_cannot_be_started_fails_like_one_that_fails(tmp_path: Path) -> None:
    service = user_service(load(env={"GOCLAW_HOME": str(tmp_path)}), {"HOME": "/h"}, "linux", 1)
    steps = (RunCommand(("/nowhere/program",)),)
    with pytest.raises(GoclawError, match="program failed: /nowhere/program: No such file"):
        command._carry_out(replace(service, reach=("true",)), steps)
