"""The systemd unit and compose.yaml, judged by systemd and by the Compose specification (OPS-7)."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from goclaw_py.cli.system.user_services import WriteServiceFile, user_service
from goclaw_py.config import load
from tests.deploy.commands import is_command
from tests.deploy.places import (
    COMPOSE,
    DEPLOY,
    DOCKERFILE,
    ROOT,
    UNIT,
    container,
    pod,
    program,
    run,
    service,
    unit,
)


def test_a_gateway_is_not_killed_before_its_own_limits_are_over() -> None:
    settings = load(env={"GOCLAW_HOME": "/nowhere"})
    needed_s = settings.shutdown.wait_s + settings.runs.cancel_grace_s + 15
    compose = service("goclaw")["stop_grace_period"]
    (systemd,) = unit("TimeoutStopSec")
    word, before_s = container()["lifecycle"]["preStop"]["exec"]["command"]
    assert word == "sleep"
    guide = Path(ROOT, "docs/guide/deployment.md").read_text("utf-8")
    (docker,) = re.findall(r"--stop-timeout (\d+)", guide)
    assert float(compose.removesuffix("s")) >= needed_s
    assert float(systemd) >= needed_s
    # preStop has to fit, too.
    assert float(pod()["terminationGracePeriodSeconds"]) - float(before_s) >= needed_s
    assert float(docker) >= needed_s


def test_systemd_has_nothing_to_say_about_the_unit_which_can_reach_little(tmp_path: Path) -> None:
    # As it is, but for the program, which is not installed here.
    (command,) = unit("ExecStart")
    there = shutil.which("true")
    assert there is not None
    copy = tmp_path / "goclaw.service"
    copy.write_text(UNIT.read_text("utf-8").replace(f"ExecStart={command}", f"ExecStart={there}"))
    # Of a key that it does not know it only warns.
    assert run(program("systemd-analyze"), "verify", "--man=no", copy) == (0, "")
    options = ("security", "--offline=true", "--threshold=30")
    code, output = run(program("systemd-analyze"), *options, copy)
    assert code == 0, output


def test_systemd_has_nothing_to_say_about_the_unit_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC OPS-10. Paths may have blanks, quotes, percent and dollar signs."""
    python = tmp_path / "my venv 5%n $HOME"
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    home = tmp_path / 'a "b" 5%n $HOME'
    env = {"GOCLAW_HOME": str(home), "HOME": str(home), "PATH": "/usr/bin"}
    (write, *_) = user_service(load(env=env), env, "linux", 1000).install
    assert isinstance(write, WriteServiceFile)
    copy = tmp_path / "goclaw.service"
    copy.write_text(write.text)
    verify = (program("systemd-analyze"), "verify", "--user", "--man=no")
    assert run(*verify, copy, env={"XDG_RUNTIME_DIR": str(tmp_path)}) == (0, "")


def test_the_unit_starts_a_gateway() -> None:
    (command,) = unit("ExecStart")
    path, *words = shlex.split(command)
    assert path == "/opt/goclaw/bin/goclaw"
    assert is_command(words)
    # With a wrong setting a start ends with 2: trying again changes nothing.
    assert unit("RestartPreventExitStatus") == ["2"]
    # The embedded database is in the same group of processes, and is stopped by the gateway.
    assert unit("KillMode") == ["mixed"]


def test_compose_takes_the_file_and_would_not_take_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(COMPOSE.read_text("utf-8").replace("stop_grace_period", "stop_grace"))
    tool = Path(sys.executable).with_name("check-jsonschema")
    schema = ("--builtin-schema", "vendor.compose-spec", "--output-format", "json")
    code, output = run(tool, *schema, COMPOSE, wrong)
    assert code == 1
    found = json.loads(output)
    assert found["parse_errors"] == []
    assert {Path(error["filename"]) for error in found["errors"]} == {wrong}, output


def test_compose_builds_our_image_from_the_top_of_the_checkout() -> None:
    build = service("goclaw")["build"]
    context = (DEPLOY / build["context"]).resolve()
    assert (context / build["dockerfile"]) == DOCKERFILE


def test_the_gateway_waits_for_a_database_that_answers_over_tcp() -> None:
    """While PostgreSQL is being set up, it answers on its unix socket already."""
    assert service("goclaw")["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert "--host=127.0.0.1" in service("postgres")["healthcheck"]["test"]


def test_the_gateway_can_be_reached_from_this_machine_only() -> None:
    assert all(port.startswith("127.0.0.1:") for port in service("goclaw")["ports"])
    assert "ports" not in service("postgres")


def test_the_service_has_limits_and_a_greedy_tool_does_not_end_it() -> None:
    assert unit("MemoryMax") == ["2G"]
    assert unit("TasksMax") == ["1024"]
    assert unit("OOMPolicy") == ["continue"]


@pytest.mark.parametrize("name", ["goclaw", "postgres"])
def test_a_container_has_no_rights_that_it_does_not_need(name: str) -> None:
    own = service(name)
    assert own["cap_drop"] == ["ALL"]
    assert own["security_opt"] == ["no-new-privileges:true"]
    # The image of PostgreSQL gives the volume to its user before it becomes that user.
    needed = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]
    assert own.get("cap_add", []) == ([] if name == "goclaw" else needed)
