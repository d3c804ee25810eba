"""``docs/guide/jobs.md`` and ``jobs-reference.md``: what they say is what happens."""

from __future__ import annotations

import io
import re
import shlex
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from goclaw_py.config import load
from goclaw_py.schedule.jobs.policy import JobPolicy
from tests.unit.cli.conftest import Shell
from tests.unit.cli.job_control import JobControl

GUIDES = Path(__file__).parents[4] / "docs" / "guide"
GUIDE = "\n".join((GUIDES / f"{name}.md").read_text("utf-8") for name in ("jobs", "jobs-reference"))


def test_the_commands_of_the_guide_work_one_after_the_other(
    goclaw: Shell, cron: JobControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for line in GUIDE.splitlines() if line.startswith("$ ")]
    assert len(lines) > 20
    for line in lines:
        said, _, command = line.removeprefix("$ ").rpartition(" | ")
        monkeypatch.setattr("sys.stdin", io.StringIO(said))
        program, *arguments = shlex.split(command)
        assert program == "goclaw"
        got = goclaw(*arguments)
        assert got.code == 0, f"{line}: {got.err}"
        if "--cron" in line and "add standup" in line:
            assert got.out in GUIDE
    assert set(cron.all()) == {"tea", "poll", "week", "disk"}


def test_the_times_of_the_guide_are_understood(goclaw: Shell, cron: JobControl) -> None:
    table = GUIDE.partition("## Inspect jobs")[0]
    rows = dict(re.findall(r"^\| `--(\w+)` \| (.*`.*) \|$", table, re.MULTILINE))
    assert set(rows) == {"at", "every", "cron"}
    for text in re.findall(r"`([^`]+)`", rows["at"]):
        assert goclaw("jobs", "add", f"job at {text}", "--at", text, "--", "x").code == 0, text
    for text in re.findall(r"`([^`]+)`", rows["every"]):
        if len(text) > 1:
            assert goclaw("jobs", "add", f"job {text}", "--every", text, "--", "x").code == 0, text


def test_the_keys_and_settings_of_the_guide_are_known(goclaw: Shell) -> None:
    known = {field.name for field in fields(JobPolicy)}
    rows = re.findall(r"^\|[^|]*\|[^|]*\| (`[^|]*`) \|$", GUIDE, re.MULTILINE)
    named = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    assert len(named) > 10
    assert named <= known
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert tomllib.loads(text)["scheduler"]
    (goclaw.home / "goclaw.toml").write_text(text)
    assert load(None).scheduler.max_jobs == 50
