"""``goclaw why`` against real processes (SPEC OPS-4): what stops a start, and real groups."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goclaw_py.store import migrate
from goclaw_py.store.postgres import Address, connection
from tests.botapi.control import Control
from tests.support.process import Home, home, telegram, wait_for
from tests.support.why import Row

ANN = 1001
GROUP = -1001

Answer = dict[str, Any]


def why(place: Home, *about: str) -> Answer:
    code, output = place.goclaw("why", *about, "--json")
    assert code == 0, output
    found: Answer = json.loads(output)
    return found


def wrong_setting(place: Home, postgres_url: str) -> Answer:
    (place.folder / "goclaw.toml").write_text("[queue]\ncapcity = 4\n")
    code, _ = place.refused()
    assert code == 2
    return why(place)


def port_taken(place: Home, postgres_url: str) -> Answer:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place.env["GOCLAW_WEB__API"] = "true"
        place.env["GOCLAW_WEB__PORT"] = str(taken.getsockname()[1])
        code, _ = place.refused()
        assert code != 0
        return why(place)


def older_database(place: Home, postgres_url: str) -> Answer:
    place.env["GOCLAW_DATABASE_URL"] = postgres_url

    async def bring_down() -> None:
        async with connection(Address(postgres_url)) as one:
            await migrate.migrate(one)
            await migrate.bring_to(one, len(migrate.known()) - 1, migrate.known())

    asyncio.run(bring_down())
    code, _ = place.refused("--no-migrate")
    assert code != 0
    return why(place)


CASES: list[Row[Callable[[Home, str], Answer]]] = [
    Row(
        "The gateway does not start: a setting is wrong",
        wrong_setting,
        "check.settings",
        "queue.capcity",
        "fix this setting",
    ),
    Row(
        "The gateway does not start: its port is taken",
        port_taken,
        "check.web-address",
        "another program already listens there",
        "port",
    ),
    Row(
        "The gateway does not start after an upgrade",
        older_database,
        "check.migrations",
        "1 pending: ",
        "goclaw migrate",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_question_about_a_start_is_answered(
    case: Row[Callable[[Home, str], Answer]], place: Home, postgres_url: str
) -> None:
    found = case.provoke(place, postgres_url)
    assert found["code"] == case.code, found
    assert case.says in found["answer"], found
    assert any(case.cure in f"{one['words']}: {one['command']}" for one in found["cures"]), found


def test_a_group_message_without_a_mention_is_explained(tmp_path: Path, api: Control) -> None:
    """SPEC CHAN-5: by the group's name, in its queue and in the list."""
    api.add_group(GROUP, "Family")
    with home(tmp_path / "home", **telegram(api)) as place:
        place.start()
        api.say(ANN, "hello?", chat_id=GROUP)
        wait_for(lambda: place.rows("groups", "list"), "the group")
        assert why(place, "Family")["code"] == "chat.undecided"
        assert place.goclaw("groups", "allow", str(GROUP))[0] == 0
        wait_for(lambda: spoken(place, api), "an answer to a mention")
        api.say(ANN, "anybody?", chat_id=GROUP)

        def unmentioned() -> Answer | None:
            found = why(place, f"telegram:{GROUP}")
            return found if found["code"] == "chat.unmentioned" else None

        found = wait_for(unmentioned, "the explanation")
        assert "The group Family got a message" in found["answer"]
        assert "did not mention @" in found["answer"]
        assert "last message without a mention: " in place.goclaw("queue", f"group:{GROUP}")[1]
        assert place.goclaw("groups", "list")[1].count(" ago") == 2


def spoken(place: Home, api: Control) -> bool:
    """Mention the bot; the gateway learns of the decision a moment later."""
    api.say(ANN, "@GoclawTestBot echo now", chat_id=GROUP)
    return bool(place.rows("sessions", "list"))
