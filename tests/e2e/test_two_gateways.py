"""Two gateways on one database (SPEC NODE-1)."""

from __future__ import annotations

from pathlib import Path

from tests.botapi.control import Control
from tests.support.process import home, telegram, wait_for

ANN = 1001
BOB = 1002


def test_a_second_gateway_waits_for_the_bot_and_takes_over(
    tmp_path: Path, api: Control, postgres_url: str
) -> None:
    """It disturbs nothing while the first one lives; after ``kill -9`` it answers."""
    settings = telegram(
        api, GOCLAW_CHANNELS__TELEGRAM__DIRECT="open", GOCLAW_DATABASE_URL=postgres_url
    )
    with home(tmp_path / "one", **settings) as one, home(tmp_path / "two", **settings) as two:
        first = one.start()
        api.say(ANN, "count to 4")
        wait_for(lambda: one.rows("runs", "list"), "the first gateway at work")
        two.start()
        wait_for(lambda: "waiting" in two.goclaw("status")[1], "the second one to wait")
        wait_for(lambda: api.texts(ANN) == ["1 2 3 4"], "the answer of the first one")
        assert [run["outcome"] for run in one.rows("runs", "list")] == ["completed"]
        assert not [call for call in api.transcript("getUpdates") if call.status == 409]

        # Without a word before its end: a draft could be under way when it dies.
        api.say(ANN, "slow 4")
        wait_for(lambda: len(one.rows("runs", "list")) == 2, "the next run")
        first.kill()
        api.say(BOB, "echo anybody?")
        wait_for(lambda: len(api.texts(ANN)) == 2, "the answer of the second one", limit_s=30)
        assert api.texts(ANN)[1].startswith("That took 4 ticks")
        wait_for(lambda: "anybody?" in api.texts(BOB), "its polling", limit_s=30)
