"""Write ``docs/schema.md`` from the migrations: ``make schema-page``.

The migrations say which table belongs to which feature (headings ``-- == Feature ==``); all else is
read from a database that they have made, with the comments in it.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.migrate import Migration, known, migrate
from goclaw_py.store.postgres import Address, Connection, connection

PAGE = Path(__file__).resolve().parents[2] / "docs" / "schema.md"

INTRODUCTION = """\
# Database schema

All tables of the PostgreSQL store, by feature. The page is generated from `migrations/`
(`make schema-page`); do not edit it. The same comments are in the database: `\\d+ TABLE` in `psql`
shows them. `schema_migrations` records which migrations were applied.

Programs may read all tables, but these change between releases. To write, use the
[HTTP API](guide/api.md); only into `work_items` other programs may insert rows.

Columns with these names mean the same in every table:

| column | meaning |
|---|---|
| `channel`, `account` | name of the channel (for example `telegram`) and of its account |
| `chat`, `thread` | the channel's id of the chat and of a topic in it |
| `peer` | `direct` for a chat with one person, `group` otherwise |
| `agent` | name of the agent |
| `session` | `sessions.key` |
| `run_id` | `runs.id` |
| `message` | the message as JSON: text, attachments, sender, target |
| `error` | for operators, never sent to a chat |
| `created_at`, `started_at`, `finished_at` | by the clock of the node |
"""

_HEADING = re.compile(r"^-- == (?P<title>.+) ==\n(?P<text>(?:-- .*\n)+)", re.MULTILINE)
_MADE = re.compile(r"^create (?:table|view) (?P<name>\w+)", re.MULTILINE)

_TABLES = """
select c.relname as name, coalesce(obj_description(c.oid, 'pg_class'), '') as meaning
from pg_class as c
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v')
"""
_COLUMNS = """
select
    a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
    a.attidentity <> '' as counted, a.attgenerated <> '' as computed,
    coalesce(pg_get_expr(d.adbin, d.adrelid, true), '') as preset,
    coalesce(col_description(a.attrelid, a.attnum), '') as meaning,
    (
        select confrelid::regclass::text
        from pg_constraint
        where contype = 'f' and conrelid = a.attrelid and conkey = array[a.attnum]
    ) as refers_to
from pg_attribute as a
left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = $1::text::regclass and a.attnum > 0 and not a.attisdropped
order by a.attnum
"""
_INDEXES = """
select
    i.indexrelid::regclass::text as name, i.indisunique as is_unique, i.indisprimary as is_primary,
    am.amname as method,
    array(
        select pg_get_indexdef(i.indexrelid, k, true) from generate_series(1, i.indnkeyatts) as k
    ) as keys,
    array(
        select pg_get_indexdef(i.indexrelid, k, true)
        from generate_series(i.indnkeyatts + 1, i.indnatts) as k
    ) as included,
    coalesce(pg_get_expr(i.indpred, i.indrelid, true), '') as condition,
    coalesce(obj_description(i.indexrelid, 'pg_class'), '') as meaning
from pg_index as i
join pg_class as c on c.oid = i.indexrelid
join pg_am as am on am.oid = c.relam
where i.indrelid = $1::text::regclass
order by not i.indisprimary, c.relname
"""


@dataclass(slots=True)
class Feature:
    """A part of the page: its introduction and its tables, in the order in which they are made."""

    title: str
    text: str
    tables: list[str] = field(default_factory=list)


def features(migrations: Sequence[Migration]) -> list[Feature]:
    """The features of the migrations; a later migration may add tables to one."""
    found: dict[str, Feature] = {}
    for migration in migrations:
        _, *parts = re.split(r"(?=^-- == .+ ==$)", migration.up, flags=re.MULTILINE)
        for part in parts:
            heading = _HEADING.match(part)
            assert heading is not None, f"a heading without text: {part[:60]}"
            text = " ".join(line.removeprefix("-- ") for line in heading["text"].splitlines())
            feature = found.setdefault(heading["title"], Feature(heading["title"], text))
            feature.tables += _MADE.findall(part)
    return list(found.values())


async def page(database: Connection, migrations: Sequence[Migration]) -> str:
    """The whole page."""
    rows = await database.fetch(_TABLES)
    meanings = {row["name"]: row["meaning"] for row in rows}
    lines = [INTRODUCTION]
    for feature in features(migrations):
        lines += [f"## {feature.title}", "", feature.text, ""]
        for name in feature.tables:
            if name in meanings:  # A later migration may have dropped or renamed it.
                lines += [f"### `{name}`", "", meanings[name], ""]
                lines += _columns(await database.fetch(_COLUMNS, name))
                lines += _indexes(await database.fetch(_INDEXES, name))
    return "\n".join(lines).rstrip("\n") + "\n"


def _columns(rows: Sequence[Any]) -> Iterator[str]:
    yield "| column | type | null | default | meaning |"
    yield "|---|---|---|---|---|"
    for row in rows:
        refers = f"References `{row['refers_to']}`." if row["refers_to"] else ""
        cells = [
            f"`{row['name']}`",
            row["type"].replace("timestamp with time zone", "timestamptz"),
            "" if row["required"] else "null",
            _preset(row),
            " ".join(filter(None, [row["meaning"], refers])),
        ]
        yield _line(cells)
    yield ""


def _preset(row: Any) -> str:
    if row["counted"]:
        return "next number"
    if row["computed"]:
        return "computed"
    return f"`{_plain(row['preset'])}`" if row["preset"] else ""


def _indexes(rows: Sequence[Any]) -> Iterator[str]:
    if not rows:
        return
    yield "| index | on | what for |"
    yield "|---|---|---|"
    for row in rows:
        unique = "unique, " if row["is_unique"] and not row["is_primary"] else ""
        method = "" if row["method"] == "btree" else f"{row['method']}, "
        on = unique + method + f"`{_plain(', '.join(row['keys']))}`"
        if row["included"]:
            on += f" with `{', '.join(row['included'])}`"
        if row["condition"]:
            on += f" where `{_plain(row['condition'])}`"
        yield _line(
            [f"`{row['name']}`", on, "Primary key." if row["is_primary"] else row["meaning"]]
        )
    yield ""


def _plain(expression: str) -> str:
    """An expression as people write it."""
    plain = re.sub(r"::(text|interval|jsonb|timestamp with time zone)(\[\])?", "", expression)
    return re.sub(r"= ANY \(ARRAY\[(.*?)\]\)", r"in (\1)", plain)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


async def _made(address: Address) -> str:
    async with connection(address) as database:
        await migrate(database)
        return await page(database, known())


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory(prefix="goclaw-pg-", dir="/tmp") as folder:
        embedded = EmbeddedPostgres(Path(folder) / "postgres")
        started = embedded.start()
        try:
            address = Address(host=str(started.host), user=started.user, database=started.database)
            PAGE.write_text(asyncio.run(_made(address)), encoding="utf-8")
        finally:
            embedded.stop()


if __name__ == "__main__":
    main()
