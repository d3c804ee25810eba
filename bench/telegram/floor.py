"""A gateway written by hand on one page: what a message costs without the rules of the product.

It stores messages before it confirms them. A run, both entries of its history and the reply are
one commit, and a reply is marked when Telegram has it. Each chat is answered in order, once. There
is nothing else: no owners, stops, debounce, budgets, formatting, rate limits or recovery.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import orjson

from bench.telegram.agent import answer_to
from goclaw_py.app.loop import run
from goclaw_py.store.embedded import EmbeddedPostgres

_TABLES = """
create table inbox (id bigint primary key, chat bigint, text text, received_at timestamptz);
create table runs (id bigint primary key, chat bigint, outcome text, ended_at timestamptz);
create table history (chat bigint, id bigint, role text, text text, at timestamptz,
  primary key (chat, id));
create table outbox (id bigint primary key, chat bigint, text text, created_at timestamptz,
  sent_at timestamptz) with (fillfactor = 80);
"""
_STORE = """
insert into inbox
select id, chat, text, $4 from unnest($1::bigint[], $2::bigint[], $3::text[]) as m(id, chat, text)
on conflict do nothing returning id, chat, text
"""
_END = """
with ended as (
  select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[])
    as m(id, chat, prompt, reply)
), run as (
  insert into runs select id, chat, 'done', $5 from ended
), past as (
  insert into history select chat, 2 * id, 'user', prompt, $5 from ended
  union all select chat, 2 * id + 1, 'assistant', reply, $5 from ended
)
insert into outbox select id, chat, reply, $5 from ended
"""
_SENT = "update outbox set sent_at = $2 where id = any ($1::bigint[])"

# The tables are empty when the statements are planned: without the first one, whole tables may be
# read. The others are those of the product.
_SESSION = {"enable_seqscan": "off", "plan_cache_mode": "force_generic_plan", "jit": "off"}


class Group:
    """Rows for one statement: those that come during a commit share the next one."""

    def __init__(self, pool: Any, statement: str) -> None:
        self._pool = pool
        self._statement = statement
        self._rows: list[tuple[object, ...]] = []
        self._next: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def add(self, *row: object) -> None:
        """Return when the row is committed."""
        self._rows.append(row)
        if self._next is None:
            self._next = asyncio.create_task(self._commit())
        await self._next

    async def _commit(self) -> None:
        async with self._lock:
            rows, self._rows, self._next = self._rows, [], None
            await self._pool.execute(self._statement, *zip(*rows, strict=True), datetime.now(UTC))


class Floor:
    """Receives, answers and sends."""

    def __init__(self, url: str, session: aiohttp.ClientSession, pool: Any) -> None:
        self._url = url
        self._session = session
        self._pool = pool
        self._ends, self._sent = Group(pool, _END), Group(pool, _SENT)
        self._chats: dict[int, deque[tuple[int, str]]] = {}

    async def serve(self) -> None:
        """Answer for ever."""
        offset = 0
        async with asyncio.TaskGroup() as group:
            while True:
                updates = await self._call("getUpdates", offset=offset, timeout=30)
                if not updates:
                    continue
                offset = updates[-1]["update_id"] + 1
                messages = [(each["update_id"], each["message"]) for each in updates]
                rows = [(number, it["chat"]["id"], it["text"]) for number, it in messages]
                columns = zip(*rows, strict=True)
                for row in await self._pool.fetch(_STORE, *columns, datetime.now(UTC)):
                    number, chat, text = row
                    if chat not in self._chats:
                        self._chats[chat] = deque()
                        group.create_task(self._answer(chat, self._chats[chat]))
                    self._chats[chat].append((number, text))

    async def _answer(self, chat: int, waiting: deque[tuple[int, str]]) -> None:
        while waiting:
            number, prompt = waiting.popleft()
            reply = answer_to(prompt)
            await self._ends.add(number, chat, prompt, reply)
            await self._call("sendMessage", chat_id=chat, text=reply)
            await self._sent.add(number)
        del self._chats[chat]

    async def _call(self, method: str, **parameters: object) -> Any:
        body, headers = orjson.dumps(parameters), {"Content-Type": "application/json"}
        async with self._session.post(self._url + method, data=body, headers=headers) as response:
            answer = orjson.loads(await response.read())
        if not answer["ok"]:
            raise RuntimeError(f"{method}: {answer}")
        return answer["result"]


async def main(url: str, token: str, state: Path) -> int:
    """Run until SIGTERM."""
    this = asyncio.current_task()
    assert this is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    with EmbeddedPostgres(state / "postgres") as embedded, suppress(asyncio.CancelledError):
        at = embedded.start()
        place = {"host": at.host, "user": at.user, "database": at.database}
        connector = aiohttp.TCPConnector(limit=64)
        async with (
            asyncpg.create_pool(**place, max_size=10, server_settings=_SESSION) as pool,
            aiohttp.ClientSession(connector=connector) as session,
        ):
            await pool.execute(_TABLES)
            print("ready", flush=True)
            await Floor(f"{url}/bot{token}/", session, pool).serve()
    return 0


if __name__ == "__main__":
    sys.exit(run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))))
