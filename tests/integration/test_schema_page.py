"""docs/schema.md is what the migrations make."""

from __future__ import annotations

import pytest

from goclaw_py.store.migrate import known, tables
from goclaw_py.store.postgres import connection
from tests.support.postgres import Database
from tests.tools.schema_page import PAGE, features, page

pytestmark = pytest.mark.real_time


async def test_the_page_is_current(postgres_database: Database) -> None:
    async with connection(postgres_database.address) as one:
        now = await page(one, known())
    assert PAGE.read_text(encoding="utf-8") == now, "run: make schema-page"


def test_every_table_belongs_to_a_feature() -> None:
    named = [name for feature in features(known()) for name in feature.tables]
    assert sorted(set(named) - {"outbox_heads"}) == tables(known())
    assert len(named) == len(set(named))


async def test_every_table_and_index_says_what_it_is_for(postgres_database: Database) -> None:
    async with connection(postgres_database.address) as one:
        rows = await one.fetch(
            "select c.relname from pg_class as c "
            "left join pg_index as i on i.indexrelid = c.oid "
            "where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v', 'i') "
            "and i.indisprimary is not true and obj_description(c.oid, 'pg_class') is null"
        )
    assert {row["relname"] for row in rows} <= {"schema_migrations"}
