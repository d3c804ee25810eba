"""Beginning and checking: ``init`` and ``doctor`` (SPEC OPS-1, CHAN-8, HB-8, OPS-4)."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.agents.models import catalog
from goclaw_py.cli import composition, main
from goclaw_py.cli.doctor import machine
from goclaw_py.cli.doctor.agents import check_heartbeats
from goclaw_py.cli.entry import run
from goclaw_py.cli.system import init as setup
from goclaw_py.cli.system.settings_file import SETTINGS_EXAMPLE
from goclaw_py.config import Settings, heartbeat_policy, job_profile, load
from goclaw_py.config.lanes import DEFAULT_LANES
from goclaw_py.core.errors import ChannelError, GoclawError, NotSent, StoreUnavailable
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.schedule.heartbeat.decisions import A_HEARTBEAT_RUN, HeartbeatPolicy
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE
from goclaw_py.store.postgres.checkup import Checkup
from tests.support.doctor import CHECKUP, Place
from tests.unit.cli.conftest import Shell, give
from tests.unit.cli.job_control import JobControl


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check_up(settings: Settings) -> Checkup:
        return CHECKUP

    async def check_parts(settings: Settings) -> None:
        return None

    monkeypatch.setattr(composition, "check_up", check_up)
    give(monkeypatch, JobControl())

    async def probe(settings: Settings, limit_s: float) -> list[tuple[str, str | ChannelError]]:
        return [("telegram/default", "@GoclawBot")]

    monkeypatch.setattr(composition, "check_parts", check_parts)
    monkeypatch.setattr(composition, "probe_channels", probe)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_BASE_URL", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_the_doctor_is_content_with_a_fresh_installation(goclaw: Shell, healthy: None) -> None:
    got = goclaw("doctor")
    assert got.code == 0
    assert "WRONG" not in got.out
    assert "hint   telegram: not configured\n       → get a token from @BotFather" in got.out
    assert "ok     agent main, heartbeat: every 30 minutes, target last" in got.out
    assert "ok     database: embedded, schema 1" in got.out


@pytest.mark.parametrize(("text", "expected"), [
    ("[lanes]\nmain = 0\n", "WRONG  settings: "),
    ("[channels.nothing]\n", "WRONG  channels and agents: "),
    ("[state]\nfolder = 'goclaw.toml/x'\n", "make it writable, or set state.folder"),
])  # fmt: skip
def test_the_doctor_finds_what_is_wrong_and_names_a_cure(
    goclaw: Shell, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    async def check_up(settings: Settings) -> Checkup:
        raise StoreUnavailable("not asked here")

    monkeypatch.setattr(composition, "check_up", check_up)
    (goclaw.home / "goclaw.toml").write_text(text)
    got = goclaw("doctor")
    assert got.code == 1
    assert expected in got.out


@pytest.mark.parametrize(("text", "expected"), [
    ("", ("every 30 minutes, target last", "")),
    ("interval = '0'", ("off", "")),
    (
        "interval = '1h'\nactive_hours = { start = '22:00', end = '06:00' }\ntarget = 'none'",
        ("every hour, 22:00\u201306:00 UTC, target none", ""),
    ),
    ("target = 'telegram'", ("every 30 minutes, target telegram", "")),
    (
        "target = 'telegram.work:12345:7'",
        (
            "every 30 minutes, target telegram.work:12345:7, which is disabled",
            "set channels.telegram.accounts.work.enabled = true, or use another target",
        ),
    ),
    ("enabled = false\ntarget = 'telegram.work'", ("off", "")),
])  # fmt: skip
def test_heartbeats_are_described(tmp_path: Path, text: str, expected: tuple[str, str]) -> None:
    channel = "[channels.telegram]\ntoken = 't'\naccounts.work = { enabled = false }\n"
    (finding,) = check_heartbeats(Place(tmp_path).world(f"[heartbeat]\n{text}\n{channel}"))
    assert (finding.fact, finding.cure) == expected
    assert finding.subject == "agent main, heartbeat"
    assert not finding.is_hint


def test_a_missing_library(goclaw: Shell, healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "find_spec", lambda name: None)
    (goclaw.home / "goclaw.toml").write_text("[agents.main]\nmodel = 'groq:x'\napi_key = 'k'\n")
    got = goclaw("doctor")
    assert got.code == 1
    assert "agent main: groq:x: its library is not installed" in got.out
    assert "pip install 'pydantic-ai-slim[groq]'" in got.out


def test_telegram_is_asked(goclaw: Shell, healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    async def probe(settings: Settings, limit_s: float) -> list[tuple[str, str | ChannelError]]:
        return [("telegram/default", NotSent("no connection to the Bot API"))]

    monkeypatch.setenv("GOCLAW_TELEGRAM_TOKEN", "1:a")
    assert "ok     channel telegram/default: @GoclawBot" in goclaw("doctor").out
    monkeypatch.setattr(composition, "probe_channels", probe)
    got = goclaw("doctor")
    assert got.code == 1
    assert (
        "WRONG  channel telegram/default: no connection to the Bot API\n"
        "       → check the network connection of this machine" in got.out
    )


def test_init_writes_a_start_that_works_and_keeps_what_is_there(goclaw: Shell) -> None:
    first = goclaw("init")
    assert first.code == 0
    file = goclaw.home / "goclaw.toml"
    checklist = goclaw.home / "workspace" / "HEARTBEAT.md"
    assert first.out.splitlines()[:2] == [f"wrote  {file}", f"wrote  {checklist}"]
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("[lanes]\nmain = 5\n")
    checklist.write_text("- mine")
    second = goclaw("init")
    assert second.out.splitlines()[:2] == [f"kept   {file}", f"kept   {checklist}"]
    assert checklist.read_text() == "- mine"


def test_init_writes_where_it_is_told_to(goclaw: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOCLAW_CONFIG", str(goclaw.home / "new" / "a.toml"))
    assert goclaw("init").code == 0
    assert (goclaw.home / "new" / "a.toml").exists()
    assert goclaw("--config", str(goclaw.home / "b.toml"), "init").code == 0
    assert (goclaw.home / "b.toml").exists()
    # It does not go on from settings that are wrong.
    monkeypatch.setenv("GOCLAW_HOME", str(tmp := goclaw.home / "other"))
    monkeypatch.delenv("GOCLAW_CONFIG")
    tmp.mkdir()
    (tmp / "goclaw.toml").write_text("[lanes]\nmain = 0\n")
    assert goclaw("init").code == 2
    assert not (tmp / "workspace").exists()


def test_a_lost_checklist(goclaw: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(setup, "_EXAMPLE", "not-there")
    with pytest.raises(GoclawError, match="incomplete"):
        setup.heartbeat_example()


def test_the_exit_code_of_main_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["goclaw", "nothing"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert run(["version"]) == 0


def test_the_example_with_every_line_switched_on_is_valid(tmp_path: Path) -> None:
    lines = []
    for line in SETTINGS_EXAMPLE.read_text("utf-8").splitlines():
        bare = line.removeprefix("# ")
        is_setting = line.startswith("# ") and (" = " in bare or bare.startswith("["))
        lines.append(bare if is_setting else line)
    file = tmp_path / "all.toml"
    file.write_text("\n".join(lines))
    got = load(file, {"GOCLAW_HOME": str(tmp_path)})
    assert got.channels["telegram"].accounts["work"].options
    given = tomllib.loads(file.read_text())
    kinds = {"queue": got.queue, "runs": got.runs, "shutdown": got.shutdown, "log": got.log}
    more = {"state": got.state, "database": got.database, "scheduler": got.scheduler}
    heartbeat_runs = {"heartbeat": got.heartbeat}
    for section, model in {**kinds, **more, **heartbeat_runs}.items():
        fields = type(model).model_fields.items()
        assert set(given[section]) == {field.alias or name for name, field in fields}
    for section in ("active_hours", "budget"):
        model = getattr(got.heartbeat, section)
        assert set(given["heartbeat"][section]) == set(type(model).model_fields)
    day = type(got.heartbeat.budget.day).model_fields
    assert set(given["heartbeat"]["budget"]["day"]) == set(day)
    shown = heartbeat_policy(got, MAIN_AGENT)
    plain = replace(shown, hours=None, zone="UTC", model="", run=A_HEARTBEAT_RUN)
    assert plain == HeartbeatPolicy()
    assert replace(shown.run, tokens=None) == A_HEARTBEAT_RUN
    assert set(given["lanes"]) == set(DEFAULT_LANES)
    assert job_profile(got) == DEFAULT_PROFILE
    assert set(given["web"]) == {*type(got.web).model_fields} - {"token", "token_file"}
    assert [source.kind for source in got.sources.values()] == ["table", "github"]
    agent = {*type(got.agents["main"]).model_fields} - {"api_key", "api_key_file", "queue"}
    assert agent <= set(given["agents"]["main"])


def test_the_shipped_checklist_has_nothing_but_headings_and_one_comment() -> None:
    """SPEC HB-3: it costs no call until it is edited."""
    text = setup.heartbeat_example()
    assert text.count("<!--") == text.count("-->") == 1
    rest = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    assert all(line.startswith("#") for line in rest.splitlines() if line.strip())


@pytest.mark.parametrize("version", [(3, 10), (3, 15), (4, 0)])
def test_a_python_that_does_not_fit_has_a_cure(version: tuple[int, int]) -> None:
    assert "3.11 to 3.14" in machine.check_python(version).cure


def test_a_foreign_channels_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.check_channels_package().cure == ""
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / "__init__.py").touch()
    for name in [name for name in sys.modules if name.partition(".")[0] == "channels"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    finding = machine.check_channels_package()
    assert str(tmp_path / "channels") in finding.fact
    assert finding.cure == "install goclaw_py in a separate environment"
