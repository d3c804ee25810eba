"""The settings as operators see them (SPEC OPS-1, SEC-2, CRON-17)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from goclaw_py.config import Settings, load, shown
from goclaw_py.config.agents import Agent
from goclaw_py.config.models import DatabaseSettings
from goclaw_py.config.origins import key_lines
from goclaw_py.operations.settings.models import MASK, OriginKind, Setting

SECRET = "hush9-hush9-hush9-hush9-hush9"


def view(folder: Path, text: str, **env: str) -> dict[str, Setting]:
    (folder / "goclaw.toml").write_text(text, "utf-8")
    found = shown(load(None, {"GOCLAW_HOME": str(folder), **env}))
    assert len({one.path for one in found}) == len(found), "a path stands there twice"
    return {one.path: one for one in found}


def test_every_value_has_its_origin(tmp_path: Path) -> None:
    text = '[lanes]\nmain = 3\n[agents.main]\n# a model\nmodel = "openai:gpt-4o"\n'
    found = view(tmp_path, text, GOCLAW_LANE_CRON="7")
    file = tmp_path / "goclaw.toml"
    about = "the maximum number of concurrent runs"
    main = Setting("lanes.main.size", 3, OriginKind.FILE, f"{file}:2", about=about)
    assert found["lanes.main.size"] == main
    assert found["lanes.cron.size"].origin == "environment variable GOCLAW_LANE_CRON"
    assert found["lanes.cron.size"].kind is OriginKind.ENVIRONMENT
    assert found["lanes.subagent.size"].kind is OriginKind.DEFAULT
    model = found["agents.main.model"]
    assert (model.value, model.origin) == ("openai:gpt-4o", f"{file}:5")
    assert "provider:model" in model.about


def test_values_are_as_the_file_would_have_them(tmp_path: Path) -> None:
    text = """
[runs]
timeout = "90s"
[scheduler]
backoff = ["30s", "5m"]
[heartbeat]
interval = 0
[agents.main.budget]
usd = 0.5
time = "2h"
[channels.telegram.chats."a.b"]
agent = "main"
"""
    found = view(tmp_path, text)
    values = {path: one.value for path, one in found.items()}
    assert values["runs.timeout"] == "90s"
    assert values["runs.outage_hold"] == "30m"
    assert values["scheduler.backoff"] == ("30s", "5m")
    assert values["heartbeat.interval"] == "0s"
    assert values["agents.main.budget.usd"] == 0.5
    assert values["agents.main.budget.time"] == "2h"
    assert values["queue.mode"] is None
    assert values["log.level"] == "info"
    assert values['channels.telegram.chats."a.b".agent'] == "main"


def test_what_a_profile_sets_is_its_default(tmp_path: Path) -> None:
    assert view(tmp_path, "")["shutdown.wait"].origin == "default"
    found = view(tmp_path, '[scheduler]\nprofile = "caco"\n')
    assert found["shutdown.wait"].origin == "default of profile caco"
    assert found["lanes.cron.size"].kind is OriginKind.DEFAULT
    assert found["lanes.main.size"].origin == "default"


def test_settings_that_are_not_set_have_what_holds_in_their_place(tmp_path: Path) -> None:
    """SPEC OPS-11: inherited values with their place, defaults of the code and of the profile."""
    text = """
[queue]
mode = "steer"
[agents.main]
model = "openai:gpt-4o"
[agents.main.queue]
capacity = 7
[agents.helper.heartbeat]
interval = "2h"
[scheduler]
profile = "caco"
[runs]
timeout = "90s"
[channels.telegram]
mention = false
[channels.telegram.queue]
drop = "new"
[channels.telegram.chats."-100".threads.5]
agent = "main"
"""
    found = view(tmp_path, text)
    assert all(bool(one.in_force) == (one.value is None) for one in found.values())
    expected = {
        "agents.main.queue.mode": ("steer", "inherited from queue.mode"),
        "queue.capacity": ("10", "default"),
        "queue.debounce_ms": ("800", "default"),
        "agents.main.queue.debounce": ("speculative", "default"),
        "agents.helper.queue.debounce": ("fixed", "default"),
        "agents.main.budget.day.usd": ("20", "default"),
        "agents.helper.budget.day.usd": ("no limit", "default"),
        "agents.main.heartbeat.interval": ("30m", "default"),
        "heartbeat.budget.usd": ("0.50", "default"),
        "agents.main.command.timeout": ("90s", "inherited from runs.timeout"),
        "scheduler.min_interval": ("1h", "default of profile caco"),
        "scheduler.turns": ("no limit", "default of profile caco"),
        "state.folder": (str(tmp_path / "state"), "default"),
        "web.token": ("none", "default"),
    }
    topic = "channels.telegram.chats.-100.threads.5"
    expected |= {
        f"{topic}.mention": ("false", "inherited from channels.telegram.mention"),
        f"{topic}.queue.drop": ("new", "inherited from channels.telegram.queue.drop"),
        f"{topic}.queue.capacity": ("7", "inherited from agents.main.queue.capacity"),
        f"{topic}.queue.mode": ("steer", "inherited from queue.mode"),
    }
    assert {path: (found[path].in_force, found[path].origin) for path in expected} == expected


SECRETS = f"""
[database]
url = "postgresql://u:{SECRET}@h/d"
[agents.main]
api_key = "{SECRET}"
base_url = "https://u:{SECRET}@h/v1"
headers = {{ X-Thing = "{SECRET}" }}
[agents.main.command]
run = ["tool", "--api-key", "{SECRET}", "--token={SECRET}", "X={SECRET}", "{SECRET}"]
[agents.main.mcp.files]
command = ["docker", "-e", "PLAIN={SECRET}", "https://u:{SECRET}@h"]
env = {{ PLAIN = "{SECRET}" }}
[agents.main.mcp.web]
url = "https://h/{SECRET}"
headers = {{ X-Thing = "{SECRET}" }}
[web]
token = "{SECRET}"
[sources.work]
kind = "github"
repo = "a/b"
token = "{SECRET}"
[channels.telegram]
token = "{SECRET}"
proxy = "socks5://u:{SECRET}@h:1"
odd = "{SECRET}"
nested = {{ secret = "{SECRET}", list = [{{ a = "{SECRET}" }}] }}
[channels.telegram.accounts.work]
token = "{SECRET}"
"""


def test_no_secret_is_ever_shown_nor_a_part_of_it(tmp_path: Path) -> None:
    found = view(tmp_path, SECRETS)
    assert "hush" not in repr(found)
    masked = {path for path, one in found.items() if one.value == MASK}
    assert masked >= {
        "database.url", "agents.main.api_key", "agents.main.base_url",
        "agents.main.headers.X-Thing", "agents.main.mcp.files.env.PLAIN", "agents.main.mcp.web.url",
        "web.token", "sources.work.token", "channels.telegram.token", "channels.telegram.odd",
        "channels.telegram.proxy",
        "channels.telegram.accounts.work.token",
    }  # fmt: skip
    assert all(found[path].secret for path in masked)
    run = found["agents.main.command.run"].value
    assert run == ("tool", "--api-key", MASK, f"--token={MASK}", f"X={MASK}", MASK)
    assert found["web.token"].kind is OriginKind.FILE


@pytest.mark.parametrize(("address", "is_shown"), [
    ("http://127.0.0.1:11434/v1", True), ("https://openrouter.ai/api/v1", True),
    (f"https://u:{SECRET}@h/v1", False), (f"https://h/v1?key={SECRET}", False),
    ("https://h/0123456789abcdef0123456789abcdef/v1", False),
])  # fmt: skip
def test_the_address_of_a_model_is_shown_if_it_has_no_secret(
    tmp_path: Path, address: str, is_shown: bool
) -> None:
    (one,) = [
        one
        for path, one in view(tmp_path, f'[agents.main]\nbase_url = "{address}"').items()
        if path == "agents.main.base_url"
    ]
    assert (one.value, one.secret) == ((address, False) if is_shown else (MASK, True))


def test_settings_made_in_code_show_no_secret_either() -> None:
    made = Settings(
        agents={"main": Agent(api_key=SecretStr(SECRET), base_url=f"https://{SECRET}@h")},
        database=DatabaseSettings(url=SecretStr(SECRET)),
    )
    assert "hush" not in repr(shown(made))


@pytest.mark.parametrize(("key", "kind", "origin"), [
    ('token_file = "/run/token"', OriginKind.SECRET_FILE, "file /run/token"),
    ('token_env = "TOKEN"', OriginKind.ENVIRONMENT, "environment variable TOKEN"),
])  # fmt: skip
def test_a_secret_that_is_kept_elsewhere_says_where_and_is_not_read(
    tmp_path: Path, key: str, kind: OriginKind, origin: str
) -> None:
    found = view(tmp_path, f"[web]\n{key}\n", TOKEN=SECRET)
    token = found["web.token"]
    assert (token.value, token.kind, token.origin, token.secret) == (MASK, kind, origin, True)
    name = key.partition(" ")[0]
    assert found[f"web.{name}"].kind is OriginKind.FILE
    assert not found[f"web.{name}"].secret


def test_a_channel_tells_where_its_token_is_kept(tmp_path: Path) -> None:
    found = view(tmp_path, '[channels.telegram]\ntoken_file = "t"\n')
    assert found["channels.telegram.token"].origin == f"file {tmp_path / 't'}"
    assert found["channels.telegram.token_file"].value == str(tmp_path / "t")


def test_what_is_no_secret_is_shown(tmp_path: Path) -> None:
    text = "[agents.monkey]\ncontext_window = 2000\n[lanes]\nkeys = 3\n"
    found = view(tmp_path, text + '[agents.main.mcp.x]\ncommand = ["y"]\n')
    assert found["agents.monkey.context_window"].value == 2000
    assert found["lanes.keys.size"].value == 3
    # A secret that nobody has set is not masked.
    assert found["agents.main.api_key"].value is None
    assert found["agents.main.api_key"].secret
    assert found["agents.main.mcp.x.url"].value == ""


def test_arguments_that_are_no_secrets_are_shown(tmp_path: Path) -> None:
    name = "/usr/local/bin/a-long-name-of-a-program-2"
    words = [name, "-p", "{prompt}", "--output-format", "x y"]
    text = f"[agents.main.command]\nrun = {words!r}\n"
    assert view(tmp_path, text)["agents.main.command.run"].value == tuple(words)


# ---------------------------------------------------------------------------- lines of a file
@pytest.mark.parametrize(("text", "lines"), [
    ("", {}),
    ("# only [this]\n\n", {}),
    ("a = 1", {("a",): 1}),
    ("\n[t] # x\na = 1\n b.c = 2\n[u.v]\na = 3\n",
     {("t", "a"): 3, ("t", "b", "c"): 4, ("u", "v", "a"): 6}),
    ("a = { b = 1, c = { d = 2 } }\ne = {}", {("a", "b"): 1, ("a", "c", "d"): 1, ("e",): 2}),
    ('a = """\n[t]\nb = 1\n"""\nc = 2', {("a",): 1, ("c",): 5}),
    ("a = '''\n# '''\nb = [\n 1, # ]\n 2,\n]\nc = 3", {("a",): 1, ("b",): 3, ("c",): 7}),
    ('[t."a.b"]\n"c d" = 1', {("t", "a.b", "c d"): 2}),
    ("[[l]]\na = 1\n[[l]]\na = 2\n[l.m]\nb = 1\n[t]\na = 1", {("l",): 1, ("t", "a"): 8}),
    ("a = 1\r\nb = 2\r\n", {("a",): 1, ("b",): 2}),
    ('a = "\u2028"\nb = 1', {("a",): 1, ("b",): 2}),
])  # fmt: skip
def test_each_value_has_the_line_of_its_begin(text: str, lines: dict[tuple[str, ...], int]) -> None:
    tomllib.loads(text)
    assert key_lines(text) == lines


keys = st.sampled_from(["a", "b", "c-d", '"e.f"', '"g h"'])
values = st.sampled_from(
    ["1", '"x"', "true", "[1, 2]", "[\n  1,\n  # ]\n  2,\n]", '"""\n[no]\nx = 1\n"""', "'''\n\n'''"]
)
blanks = st.sampled_from(["", "# [x]\n", "\n\n", "  # a = 1\n"])


@given(st.lists(st.tuples(blanks, keys, values), max_size=6, unique_by=lambda each: each[1]))
def test_the_line_of_a_value_is_that_of_its_key(written: list[tuple[str, str, str]]) -> None:
    text, expected = "[t]\n", {}
    for blank, key, value in written:
        text += blank
        expected[("t", key.strip('"'))] = text.count("\n") + 1
        text += f"{key} = {value}\n"
    tomllib.loads(text)
    assert key_lines(text) == expected


# ---------------------------------------------------------------------------- layers


LANES = ("main", "subagent", "delegate", "cron")
sizes = st.dictionaries(st.sampled_from(LANES), st.integers(1, 99))


@given(sizes, sizes)
def test_a_value_is_the_one_that_stands_where_its_origin_says(
    in_file: dict[str, int], in_env: dict[str, int]
) -> None:
    """The loader and what is told of it must not drift apart."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "goclaw.toml"
        file.write_text("[lanes]\n" + "".join(f"{k} = {v}\n" for k, v in in_file.items()))
        env = {f"GOCLAW_LANE_{key.upper()}": str(value) for key, value in in_env.items()}
        got = load(None, {"GOCLAW_HOME": name, **env})
        lines = file.read_text().splitlines()
        for lane in LANES:
            origin = got.place(("lanes", lane, "size"))
            match origin.kind:
                case OriginKind.ENVIRONMENT:
                    said = env[origin.words.removeprefix("environment variable ")]
                case OriginKind.FILE:
                    where, _, line = origin.words.rpartition(":")
                    assert where == str(file)
                    said = lines[int(line) - 1].rpartition("= ")[2]
                case _:
                    said = str({"main": 2, "subagent": 4, "delegate": 100, "cron": 1}[lane])
                    assert lane not in in_file.keys() | in_env.keys()
            assert got.lanes[lane].size == int(said)
