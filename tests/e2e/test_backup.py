"""A backup of a gateway at work, brought back in another place (SPEC DB-5, IO-2)."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from tests.botapi.control import Control
from tests.botapi.faults import Fault, FaultKind
from tests.support.again import SENT_AGAIN, unmarked
from tests.support.process import Home, home, telegram, wait_for

ANN = 1001
BOB = 1002


def test_a_gateway_goes_on_elsewhere_from_a_backup(bot: Home, api: Control, tmp_path: Path) -> None:
    """Chat, job, heartbeat, a reply that nobody could deliver: all come back, none twice."""
    gateway = bot.start()
    api.say(ANN, "echo hello")
    api.wait_visible(ANN, "hello")
    chat = f"telegram:{ANN}"
    for arguments in (
        ("cron", "add", "later", "--at", "in 30s", "--to", chat, "--message", "it is time"),
        ("cron", "add", "news", "--every", "1h", "--to", chat, "--", "echo news"),
        ("heartbeat", "off"),
    ):
        code, output = bot.goclaw(*arguments)
        assert code == 0, output
    (bot.folder / "workspace" / "notes.txt").write_text("do not forget")
    # From here on nothing can be sent: the reply waits in the outbox.
    api.fault(Fault("sendMessage", FaultKind.ERROR, 100_000, status=500, words="busy"))
    api.say(BOB, "echo undelivered")
    wait_for(lambda: unsent(bot), "a reply that waits")

    file = tmp_path / "backup.tar.gz"
    code, output = bot.goclaw("backup", str(file), "--json")
    assert code == 0, output
    saved = json.loads(output)
    assert saved["tables"]["cron_jobs"] == 2
    assert saved["files"] == {"main": 1}
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        members = [archive.extractfile(member) for member in archive]
        held = b"".join(member.read() for member in members if member)
    assert api.token.encode() not in held
    code, output = bot.goclaw("restore", str(file), "--replace", "--yes")
    assert (code, "a gateway works on this database" in output) == (1, True), output
    gateway.kill()
    api.clear_faults()

    with home(tmp_path / "there", **telegram(api)) as there:
        there.env["GOCLAW_CHANNELS__TELEGRAM__DIRECT"] = "open"
        code, output = there.goclaw("restore", str(file))
        assert code == 0, output
        assert (there.folder / "workspace" / "notes.txt").read_text() == "do not forget"
        there.start()
        api.wait_visible(BOB, "undelivered" + SENT_AGAIN)
        wait_for(lambda: "it is time" in " ".join(api.texts(ANN)), "the job")
        api.say(ANN, "echo again")
        api.wait_visible(ANN, "again")
        keys = [row["key"] for row in there.rows("sessions", "list")]
        assert len(keys) == 2
        jobs = {row["spec"]["slug"]: row for row in there.rows("cron", "list")}
        assert jobs["news"]["state"] == "active"
        (heartbeat_gateway,) = there.rows("heartbeat", "status")
        assert heartbeat_gateway["heartbeat"]["switched"] is False
        texts = [unmarked(text) for who in (ANN, BOB) for text in api.texts(who)]
        for words in ("hello", "undelivered", "it is time", "again"):
            assert sum(words in text for text in texts) == 1, texts
        assert not unsent(there)


def unsent(place: Home) -> list[object]:
    rows = place.rows("outbox", "list")
    return [row for row in rows if row["state"] in ("waiting", "sending")]
