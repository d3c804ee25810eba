"""Settings from file and environment, and every way to get one wrong (SPEC LANE-1, SEC-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.config import SettingErrors, Settings, api_key, find_file, load
from goclaw_py.config.secrets import known_secrets
from goclaw_py.core.errors import SettingError
from goclaw_py.core.ids import AgentName
from goclaw_py.scheduler.models import Drop, Mode
from tests.unit.config.loading import refused, settings


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    got = settings(tmp_path)
    assert got.lane_sizes == {"main": 2, "subagent": 4, "delegate": 100, "cron": 1}
    assert list(got.agents) == ["main"]
    assert got.agents["main"].model == "offline"
    assert (got.runs.timeout_s, got.runs.cancel_grace_s, got.runs.deadline_s) == (1800, 10, None)
    assert got.shutdown.wait_s == 30
    assert got.channels == {}
    assert got.database.url is None
    assert got.state_folder == tmp_path / "state"
    assert got.file is None


def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    for lane in ("main", "subagent", "delegate", "cron"):
        sized = settings(tmp_path, **{f"GOCLAW_LANE_{lane.upper()}": "12"})
        assert sized.lanes[lane].size == 12
    text = "[lanes]\nmain = 3\ncron = 2\nfast = 7\n[log]\nlevel = 'warning'\n"
    got = settings(tmp_path, text, GOCLAW_LANE_MAIN="9", GOCLAW_LOG__LEVEL="debug")
    assert got.lane_sizes == {"main": 9, "subagent": 4, "delegate": 100, "cron": 2, "fast": 7}
    assert got.log.level == "debug"


def test_every_kind_of_value_can_come_from_the_environment(tmp_path: Path) -> None:
    got = settings(
        tmp_path,
        GOCLAW_QUEUE__MODE="interrupt",
        GOCLAW_QUEUE__DROP="new",
        GOCLAW_QUEUE__DEBOUNCE_MS="0",
        GOCLAW_RUNS__TIMEOUT="2h",
        GOCLAW_AGENTS__MAIN__MODEL="openai:gpt-4o",
        GOCLAW_AGENTS__HELPER__CONTEXT_WINDOW="2000",
        GOCLAW_CHANNELS__TELEGRAM__ENABLED="off",
        GOCLAW_CHANNELS__TELEGRAM__ALLOW="1, two ,",
        GOCLAW_CHANNELS__TELEGRAM__ACCOUNTS__WORK__ENABLED="Yes",
        GOCLAW_TELEGRAM_TOKEN="1:a",
        GOCLAW_DATABASE_URL="postgresql://u:p@h/d",
    )
    assert (got.queue.mode, got.queue.drop) == (Mode.INTERRUPT, Drop.NEW)
    assert (got.queue.debounce_ms, got.runs.timeout_s) == (0, 7200)
    assert got.agents["main"].model == "openai:gpt-4o"
    assert got.agents["helper"].context_window == 2000
    telegram = got.channels["telegram"]
    assert (telegram.enabled, telegram.allow) == (False, ("1", "two"))
    assert telegram.options["token"] == "1:a"
    assert telegram.accounts["work"].enabled
    assert got.database.url is not None
    assert got.database.url.get_secret_value() == "postgresql://u:p@h/d"


def test_agents_of_the_environment_are_in_their_natural_order(tmp_path: Path) -> None:
    """All lists of agents have the order of the settings, and variables have none."""
    env = {f"GOCLAW_AGENTS__AGENT{number}__ECHO": "" for number in (10, 2, 1)}
    env = {name.replace("__ECHO", "__MODEL"): "test" for name in env}
    names = [name for name in settings(tmp_path, **env).agents if name != "main"]
    assert names == ["agent1", "agent2", "agent10"]


def test_empty_secrets_and_foreign_variables_are_not_settings(tmp_path: Path) -> None:
    empty = {"GOCLAW_TELEGRAM_TOKEN": "", "GOCLAW_DATABASE_URL": " "}
    got = settings(tmp_path, **empty, GOCLAW_TEST_ANYTHING="1", PATH="/bin")
    assert (got.channels, got.database.url) == ({}, None)


def test_the_file_is_found_by_option_then_variable_then_home(tmp_path: Path) -> None:
    for name, lanes in (("option", 5), ("variable", 6), ("goclaw", 7)):
        (tmp_path / f"{name}.toml").write_text(f"[lanes]\nmain = {lanes}\n")
    assert find_file(None, {})[0] == Path.home() / ".goclaw"
    assert find_file(None, {"GOCLAW_HOME": "~/x"})[0] == Path.home() / "x"
    home = {"GOCLAW_HOME": str(tmp_path)}
    named = home | {"GOCLAW_CONFIG": str(tmp_path / "variable.toml")}
    assert load(tmp_path / "option.toml", named).lanes["main"].size == 5
    assert load(None, named).lanes["main"].size == 6
    assert load(None, home).lanes["main"].size == 7


def test_paths_of_the_file_are_seen_from_the_file(tmp_path: Path) -> None:
    text = """
[state]
folder = "here"
[log]
file = "~/a.log"
[agents.main]
workspace = "../w"
api_key_file = "/k"
[agents.helper]
[channels.telegram]
token_file = "t"
[channels.telegram.accounts.work]
token_file = "sub/t"
"""
    (tmp_path / "etc").mkdir()
    file = tmp_path / "etc" / "goclaw.toml"
    file.write_text(text)
    got = load(file, {"GOCLAW_HOME": str(tmp_path)})
    assert got.state_folder == file.parent / "here"
    assert got.log.file == Path.home() / "a.log"
    assert got.workspace(AgentName("main")).resolve() == tmp_path / "w"
    assert got.agents["main"].api_key_file == Path("/k")
    assert got.workspace(AgentName("helper")) == tmp_path / "workspaces" / "helper"
    telegram = got.channels["telegram"]
    assert telegram.options["token_file"] == str(file.parent / "t")
    assert telegram.accounts["work"].options["token_file"] == str(file.parent / "sub/t")


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    """Some editors write one: the settings would be no TOML, and a secret another one."""
    text = "[agents.main]\nmodel = 'openai:x'\napi_key_file = 'key'\n"
    (tmp_path / "goclaw.toml").write_text(text, "utf-8-sig")
    (tmp_path / "key").write_text("sk-of-ours\n", "utf-8-sig")
    got = load(tmp_path / "goclaw.toml", {"GOCLAW_HOME": str(tmp_path)})
    key = api_key(got, AgentName("main"), {})
    assert key is not None
    assert key.get_secret_value() == "sk-of-ours"
    assert "sk-of-ours" in known_secrets(got, {})


def test_paths_of_variables_are_seen_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    got = settings(tmp_path, GOCLAW_STATE__FOLDER="s")
    assert got.state_folder == tmp_path / "s"
    assert got.workspace(AgentName("main")) == tmp_path / "workspace"


def test_the_real_environment_is_read_by_default_but_not_by_settings_made_in_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOCLAW_HOME", str(tmp_path))
    monkeypatch.setenv("GOCLAW_LANE_CRON", "4")
    assert load().lanes["cron"].size == 4
    monkeypatch.setenv("GOCLAW_LANES__MAIN", "7")
    monkeypatch.setenv("LANES", '{"main": 8}')
    got = Settings()
    assert got.lanes["main"].size == 2
    assert got.place(("lanes", "main")).words == "default"
    with pytest.raises(ValueError, match="frozen"):
        got.runs = got.runs


@pytest.mark.parametrize(("text", "expected"), [
    *((f"[lanes]\nmain = {value}", f"lanes.main.size = {shown}: must be a whole number, at least 1")
      for value, shown in (("0", "0"), ("true", "True"), ("'2'", "'2'"), ("1.5", "1.5"))),
    ("[lanes]\nMain = 1", "lanes.Main = 'Main': must be a lane name"),
    ("lanes = 3", "lanes = 3: must be a table"),
    ("[queue]\ncapacity = 10001", "queue.capacity = 10001: must be a whole number, at least 1"),
    ("[queue]\nmode = 'lifo'",
     "queue.mode = 'lifo': must be 'queue', 'followup', 'interrupt', 'collect' or 'steer'"),
    ("[queue]\ndebouncing = 5", "queue.debouncing = 5: unknown key (did you mean "),
    ("[queue]\ndebounce_m = 5", "did you mean debounce_ms?"),
    ("[quue]\na = 1", "quue = (a table): unknown key (did you mean queue?); known here: agents"),
    ("home = '/x'", "home = '/x': unknown key; known here: lanes, queue"),
    ("file = '/x'", "file = '/x': unknown key"),
    ("[runs]\ntimeout = '1h30m'", "runs.timeout = '1h30m': must be a whole number with s, m"),
    ("[runs]\ntimeout = 30", "runs.timeout = 30: must be a whole number with s, m, h or d"),
    ("[runs]\ntimeout = '0s'", "at least 1s"),
    ("[runs]\ntimeout = ' 5m'", "runs.timeout = ' 5m'"),
    ("[runs]\ntimeout_s = 5", "runs.timeout_s = 5: unknown key"),
    ("[agents.Big]", "agents.Big = 'Big': must be a name of up to 64"),
    ("[agents.main]\nmodel = ' '", "agents.main.model = ' ': must be text that is not empty"),
    ("[agents.main]\nmodell = 'x'", "did you mean model?"),
    ("[agents.main]\nbase_url = 'ftp://x'", "agents.main.base_url = [hidden]: must be an address"),
    ("[agents.main.queue]\nmode = 3", "agents.main.queue.mode = 3: must be 'queue'"),
    ("[channels.telegram]\nenabled = 'yes'", "enabled = 'yes': must be true or false"),
    ("[channels.telegram]\nallow = '1'", "allow = '1': must be a list of ids"),
    ("[channels.telegram]\nallow = [1.5]", "allow = [1.5]: must be a list of ids"),
    ("[channels.telegram]\nallow = [true]", "allow = [True]: must be a list of ids"),
    ("[channels.telegram]\ndirect = 'all'", "direct = 'all': must be 'pairing', "),
    ("[channels.telegram]\nagent = 'bob'",
     "agent = 'bob': there is no such agent; use one of: main"),
    ("[channels.telegram.accounts.work]\nagent = 'bob'",
     "channels.telegram.accounts.work.agent = 'bob': there is no such agent; use one of: main"),
    ("[channels.telegram.accounts.work.queue]\nmod = 1",
     "channels.telegram.accounts.work.queue.mod = 1: unknown key (did you mean mode?); known"),
    ("[channels.console]\nmentoin = true",
     "channels.console.mentoin = True: unknown key (did you mean mention?); known here: agent, "),
    ("[channels.web]\nagnet = 'helper'", "(did you mean agent?)"),
    ("[channels.web.accounts.work]", "channels.web.accounts = (a table): unknown key; known here"),
    ("[channels.telegram.accounts.default]\ntoken = 'secret'",
     "accounts.default = (a table): set it in [channels.telegram] instead"),
    ("[channels]\ntelegram = 1", "channels.telegram = 1: must be a table"),
    ("agents = 'x'", "agents = 'x': must be a table"),
    ("[state]\nfolder = 5", "state.folder = 5: "),
    (f"[log]\nlevel = '{'x' * 500}'", "level = 'xxx"),
    ("[log]\nlevel = 'loud'", "log.level = 'loud': must be 'debug', 'info'"),
])  # fmt: skip
def test_a_wrong_setting_is_told_with_file_key_value_and_what_is_allowed(
    tmp_path: Path, text: str, expected: str
) -> None:
    line = refused(tmp_path, text)
    number = len(text.splitlines())
    file = str(tmp_path / "goclaw.toml")
    # An empty table has no line.
    assert line.startswith((f"{file}:{number}: ", f"{file}: "))
    assert expected in line
    assert len(line.splitlines()) == 1
    assert len(line) < 350 + len(file)


def test_a_bad_lane_variable_is_an_error_that_names_it(tmp_path: Path) -> None:
    allowed = "must be a whole number, at least 1 and at most 100000"
    for value in ("0", "-1", "two", "", "1.5", "1e3", "9" * 30):
        said = refused(tmp_path, GOCLAW_LANE_MAIN=value)
        told = f"lanes.main.size = {value!r}: {allowed}"
        assert said == f"environment variable GOCLAW_LANE_MAIN: {told}"


@pytest.mark.parametrize(("name", "value", "expected"), [
    ("GOCLAW_LAEN_MAIN", "3", "GOCLAW_LAEN_MAIN: unknown variable; did you mean GOCLAW_LANE"),
    ("GOCLAW_TELEGRAM_TOKN", "1:secret", "did you mean GOCLAW_TELEGRAM_TOKEN?"),
    ("GOCLAW_WEB_PORT", "1", "GOCLAW_WEB_PORT: unknown variable; did you mean GOCLAW_WEB__PORT?"),
    ("GOCLAW_QUEU__MODE", "queue", "did you mean GOCLAW_QUEUE__<KEY>?"),
    ("GOCLAW_QUEUE__", "x", "unknown variable"),
    ("GOCLAW_", "x", "unknown variable"),
    ("GOCLAW_QUEUE__MOED", "x", "queue.moed = 'x': unknown key (did you mean mode?); known here: "),
    ("GOCLAW_CHANNELS__TELEGRAM__ENABLED", "maybe", "must be true or false"),
])  # fmt: skip
def test_an_unknown_variable_is_wrong(tmp_path: Path, name: str, value: str, expected: str) -> None:
    line = refused(tmp_path, **{name: value})
    assert name in line
    assert expected in line
    assert "secret" not in line


def test_variables_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    said = refused(tmp_path, GOCLAW_LANES__MAIN="3", GOCLAW_LANE_MAIN="4")
    assert "lanes.main.size is also set by another variable" in said
    said = refused(tmp_path, GOCLAW_LOG__LEVEL="info", GOCLAW_LOG__LEVEL__X="1")
    assert "GOCLAW_LOG__LEVEL__X" in said


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    # A broken file does not hide a wrong variable.
    assert len(refused(tmp_path, "x", GOCLAW_NOPE="1").splitlines()) == 2
    text = "[lanes]\nmain = 0\n[queue]\nmodes = 1\n" + "\n" * 9 + "[log]\nlevel = 'x'\n"
    said = refused(tmp_path, text, GOCLAW_LANE_CRON="0", GOCLAW_NOPE="1")
    assert len(said.splitlines()) == 5
    with pytest.raises(SettingErrors) as caught:
        settings(tmp_path)
    keys = [error.key for error in caught.value.errors]
    assert keys == ["lanes.main.size", "queue.modes", "log.level"], "in the order of the lines"


@pytest.mark.parametrize("text", [
    "[database]\nurl = 'mysql://u:hunter2@h/d'", "[database]\nurl = ['hunter2']",
    "[agents.main]\napi_key = ['hunter2']",
    "[agents.main]\nheaders = { Authorization = ['hunter2'] }",
    "[agents.main]\nheaders = 'hunter2'", "[agents.main]\napi_kye = 'hunter2'",
    "[agents.main]\napi_key = 'hunter2'\napi_key_file = 'x'\napi_key_env = 'X'",
    "agents = [{ main = { api_key = 'hunter2' } }]",
])  # fmt: skip
def test_a_secret_is_never_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingError) as caught:
        settings(tmp_path, text)
    shown = "".join((str(caught.value), repr(caught.value), repr(caught.value.__cause__)))
    assert "hunter2" not in shown


def test_printed_settings_hold_no_secret(tmp_path: Path) -> None:
    text = """
[database]
url = "postgresql://u:hunter2@h/d"
[agents.main]
api_key = "hunter2"
headers = { A = "hunter2" }
[channels.telegram]
token = "hunter2"
[channels.telegram.accounts.b]
token = "hunter2"
"""
    assert "hunter2" not in repr(settings(tmp_path, text))


def test_what_is_not_toml_is_told_with_file_and_line(tmp_path: Path) -> None:
    broken = {"[lanes]\nmain =\n": 2, "a = 1\n\nb c\n": 3, 'a = 1\nb = """\n': 2, "[lanes": 1}
    for text, number in broken.items():
        line = refused(tmp_path, text)
        assert line.startswith(f"{tmp_path / 'goclaw.toml'}:{number}: this is not valid TOML: ")
        assert "(at " not in line


def test_a_section_that_stands_twice_is_named_with_its_first_line(tmp_path: Path) -> None:
    line = refused(tmp_path, "[lanes]\n[agents.main]\n[log]\n[agents.main]\nmodel = 'offline'\n")
    told = "the section [agents.main] is defined twice (line 2): put its keys into one section"
    assert line == f"{tmp_path / 'goclaw.toml'}:4: {told}"


def test_a_file_that_is_not_there_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"none\.toml: cannot be read: No such file"):
        load(tmp_path / "none.toml", {"GOCLAW_HOME": str(tmp_path)})
    (tmp_path / "goclaw.toml").write_bytes(b"\xff\xfe")
    what = "this is not UTF-8 text; save the file as UTF-8"
    assert refused(tmp_path) == f"{tmp_path / 'goclaw.toml'}: {what}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr/et@localhost/x",
        "postgresql://me:s3#cret@localhost/x",
        "postgresql://me:s3@cret@localhost/x",
    ],
)
def test_a_password_with_special_characters_is_refused_unshown(tmp_path: Path, url: str) -> None:
    env = {"HOME": str(tmp_path), "GOCLAW_HOME": str(tmp_path), "GOCLAW_DATABASE_URL": url}
    with pytest.raises(SettingError, match="percent-encoded") as caught:
        load(None, env)
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://goclaw@/goclaw?host=/run/postgresql",
        "postgresql://u@h1:5432,h2:5432/db?target_session_attrs=read-write",
        "postgresql://u:p%40ss@h1,h2:5433,h3:5434/db",
        "postgresql://[2001:db8::1]/db",
        "postgresql:///db",
    ],
)
def test_a_database_may_have_a_socket_folder_or_several_hosts(tmp_path: Path, url: str) -> None:
    env = {"HOME": str(tmp_path), "GOCLAW_HOME": str(tmp_path), "GOCLAW_DATABASE_URL": url}
    settings = load(None, env)
    assert settings.database.url is not None
    assert settings.database.url.get_secret_value() == url
