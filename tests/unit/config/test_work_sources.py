"""``[sources.NAME]``: where jobs get their work from (SPEC CRON-18, SEC-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.config import Settings, source_token
from goclaw_py.core.errors import SettingError
from tests.unit.config.loading import refused as refused_by
from tests.unit.config.loading import settings as settings_of

TOKEN = "ghx_0123456789abcdef0123456789"
GITHUB = f"kind = 'github'\nrepo = 'acme/shop'\ntoken = '{TOKEN}'\n"


def settings(folder: Path, text: str = "", **env: str) -> Settings:
    return settings_of(folder, f"[sources.bugs]\n{text}\n" if text else "", **env)


def refused(folder: Path, text: str) -> str:
    return refused_by(folder, f"[sources.bugs]\n{text}\n")


def test_a_table_needs_its_kind_only_and_github_a_repository_and_a_token(tmp_path: Path) -> None:
    assert settings(tmp_path).sources == {}
    got = settings(tmp_path, "kind = 'table'").sources["bugs"]
    assert (got.queue, got.forgotten_after_s) == (None, 86_400)
    more = settings(tmp_path, "kind = 'table'\nqueue = 'a b'\nforgotten_after = '2h'")
    assert (more.sources["bugs"].queue, more.sources["bugs"].forgotten_after_s) == ("a b", 7200)
    got = settings(tmp_path, GITHUB).sources["bugs"]
    assert (got.label, got.claim_label, got.failed_label) == ("goclaw", "in-progress", "failed")
    assert (got.close, got.base_url) == (False, "https://api.github.com")


def test_all_of_it_can_come_from_the_environment(tmp_path: Path) -> None:
    env = {
        "KIND": "github",
        "REPO": "acme/shop.js",
        "TOKEN": TOKEN,
        "LABEL": "for the bot",
        "CLAIM_LABEL": "taken",
        "FAILED_LABEL": "",
        "CLOSE": "yes",
        "BASE_URL": "http://127.0.0.1:1/api",
        "FORGOTTEN_AFTER": "3d",
    }
    got = settings(tmp_path, **{f"GOCLAW_SOURCES__BUGS__{key}": env[key] for key in env})
    bugs = got.sources["bugs"]
    assert (bugs.kind, bugs.repo) == ("github", "acme/shop.js")
    assert (bugs.label, bugs.claim_label) == ("for the bot", "taken")
    assert (bugs.failed_label, bugs.close, bugs.forgotten_after_s) == ("", True, 3 * 86_400)
    token = source_token(got, "bugs", {})
    assert token is not None
    assert token.get_secret_value() == TOKEN


def test_the_token_is_found_in_a_file_or_a_variable(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(f"{TOKEN}-in-file\n")
    start = "kind = 'github'\nrepo = 'acme/shop'\n"
    for line, expected in (
        ("token_file = 't'", f"{TOKEN}-in-file"),
        ("token_env = 'MINE'", f"{TOKEN}-in-env"),
    ):
        got = settings(tmp_path, start + line)
        token = source_token(got, "bugs", {"MINE": f"{TOKEN}-in-env"})
        assert token is not None
        assert token.get_secret_value() == expected
    missing = settings(tmp_path, f"{start}token_env = 'MINE'")
    with pytest.raises(SettingError, match=r"sources\.bugs\.token_env = 'MINE': this variable is"):
        source_token(missing, "bugs", {})


@pytest.mark.parametrize(("text", "expected"), [
    ("queue = 'a'", "sources.bugs.kind = (missing): is required: table: rows"),
    ("kind = 'jira'", "sources.bugs.kind = 'jira': must be 'table' or 'github'"),
    ("kind = 'table'\nrepo = 'a/b'", 'must not have repo: only for kind = "github"'),
    ("kind = 'table'\nclose = true\nlabel = 'x'", "must not have close, label: only for"),
    ("kind = 'table'\nqueue = ''", "must be the queue of the rows, a text of up to 200"),
    ("kind = 'table'\nforgotten_after = '59s'", '"30m", at least 60s'),
    (f"{GITHUB}queue = 'a'", 'must not have queue: only for kind = "table"'),
    ("kind = 'github'\ntoken = 'x'", 'must have a repo, such as repo = "OWNER/NAME"'),
    ("kind = 'github'\nrepo = 'a/b'", "must have a token: token_file, token_env or token"),
    ("kind = 'github'\nrepo = 'shop'", "repo = 'shop': must be OWNER/NAME"),
    ("kind = 'github'\nrepo = 'https://github.com/a/b'", "must be OWNER/NAME"),
    ("kind = 'github'\nrepo = 'a/..'", "repo = 'a/..': must be OWNER/NAME"),
    ("kind = 'github'\nrepo = 'a/b?c'", "repo = 'a/b?c': must be OWNER/NAME"),
    (f"{GITHUB}token_env = 'T'", "sources.bugs.token_env = 'T': token is also set"),
    (f"{GITHUB}label = 'a,b'", "label = 'a,b': must be a label of up to 50 characters"),
    (f"{GITHUB}label = ''", "label = '': must be a label of up to 50 characters"),
    (f"{GITHUB}label = '{'x' * 51}'", "must be a label of up to 50 characters"),
    (f"{GITHUB}label = 'Failed'", "must be different"),
    (f"{GITHUB}claim_label = 'GOCLAW'", "must be different"),
    (f"{GITHUB}base_url = 'ftp://x'", "must be an address that starts with http://"),
    (f"{GITHUB}labels = 'x'", "did you mean label?"),
])  # fmt: skip
def test_a_wrong_value_is_told(tmp_path: Path, text: str, expected: str) -> None:
    said = refused(tmp_path, text)
    assert expected in said
    assert TOKEN not in said


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    variable = "GOCLAW_SOURCES__BUGS__KIND"
    told = "sources.bugs.kind = 'list': must be 'table' or 'github'"
    said = refused_by(tmp_path, "", **{variable: "list"})
    assert said.startswith(f"environment variable {variable}: {told}")


def test_the_token_is_shown_nowhere(tmp_path: Path) -> None:
    """SPEC SEC-2: also where its key is mistyped."""
    assert TOKEN not in repr(settings(tmp_path, GITHUB))
    assert TOKEN not in refused(tmp_path, GITHUB.replace("token", "tokn"))
    assert TOKEN not in refused(tmp_path, GITHUB.replace(TOKEN, f"{TOKEN} "))
