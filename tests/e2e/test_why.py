"""``goclaw why`` against real processes (SPEC OPS-4): what stops a start, and real groups."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from goclaw_py.store import migrate
from goclaw_py.store.postgres import Address, connection
from tests.support.process import Home
from tests.support.why import Row

ANN = 1001

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
            await migrate.migrate_to(one, len(migrate.known()) - 1, migrate.known())

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
