"""``docs/guide/work.md``: its table of work can be reached and used as it says (SPEC CRON-18)."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from goclaw_py.store.embedded import EmbeddedPostgres
from tests.support.process import ROOT, Home, wait_for

GUIDE = (ROOT / "docs" / "guide" / "work.md").read_text("utf-8")


def block(kind: str, words: str) -> str:
    """The fenced block of the guide that begins with these words."""
    texts: list[str] = re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    (found,) = [text for text in texts if text.startswith(words)]
    return found


def connect(place: Home, sql: str) -> str:
    """What the command of the guide prints when it is given some SQL."""
    command = block("console", "$ psql").removeprefix("$ ").strip()
    assert "~/.goclaw/" in command
    binaries: Path = EmbeddedPostgres(place.state / "postgres").binary("psql").parent
    done = subprocess.run(
        ["sh", "-ec", command.replace("~/.goclaw/", f"{shlex.quote(str(place.folder))}/")],
        env={"PATH": f"{binaries}:{place.env['PATH']}"},
        input=f"\\set ON_ERROR_STOP on\n{sql}",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout


def test_the_table_of_work_is_filled_and_read_as_the_guide_says(place: Home) -> None:
    (place.folder / "goclaw.toml").write_text('[sources.chores]\nkind = "table"\n')
    place.start()
    made = shlex.split(block("console", "$ goclaw"))
    assert made[:2] == ["$", "goclaw"]
    code, output = place.goclaw(*made[2:])
    assert code == 0, output
    sql = block("sql", "insert")
    assert re.search(r"Water the plants *\| open", connect(place, sql))
    code, output = place.goclaw("jobs", "run", "chores")
    assert code == 0, output
    look = sql[sql.index("select") :]
    wait_for(lambda: re.search(r"Water the plants *\| done", connect(place, look)), "its end")
