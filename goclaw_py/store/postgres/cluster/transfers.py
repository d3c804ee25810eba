"""Moving everything that belongs to a chat with a new id, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.ids import AgentName, NodeId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.schedule.jobs import job_rules
from goclaw_py.store import rules
from goclaw_py.store.postgres.jobs import rows
from goclaw_py.store.postgres.pool import Connection, Row
from goclaw_py.store.sql import queries

_SQL = queries("moves")
_APPROVALS = queries("approvals")
_NODES = queries("nodes")
_JOBS = queries("jobs")
_HEARTBEAT_RUNS = queries("heartbeat_runs")
_BACKGROUND = queries("background")


async def move(connection: Connection, old: Target, new: str, *, now: datetime) -> bool:
    """Move a chat within the caller's transaction. Returns False if nothing belongs to it."""
    place = (old.channel, old.account, old.chat)
    await connection.script(_SQL["lock_moves"])
    await connection.fetch(_SQL["lock_nodes"])
    sessions = await connection.fetch(_SQL["sessions_of"], *place)
    renamed = _renamed(sessions, old, new)
    await _move_sessions(connection, sessions, renamed, old=old, new=new, now=now)
    keys = (list(renamed), list(renamed.values()))
    kept = await connection.fetch(_SQL["retarget_sessions"], *place, new)
    touched = [*renamed.values(), *(SessionKey(row["key"]) for row in kept)]
    await connection.fetch(_SQL["retarget_inbox"], old.chat, new, touched)
    moved = [
        await connection.fetch(_SQL["retarget_runs"], *place, new, touched),
        await connection.fetch(_SQL["retarget_outbox"], *place, new, *keys),
        await connection.fetch(_SQL["drop_drafts"], *place),
        await connection.fetch(_SQL["move_chat"], *place, new),
        await connection.fetch(_SQL["move_request"], *place, new),
        await connection.fetch(_SQL["drop_request"], *place),
        await connection.fetch(_SQL["move_topics"], *place, new),
        await _move_jobs(connection, old, new, now=now),
        await connection.fetch(_HEARTBEAT_RUNS["retarget"], *place, new),
    ]
    await connection.fetch(_SQL["rename_waits"], *keys)
    await connection.fetch(_APPROVALS["retarget"], *place, new)
    return bool(sessions) or any(moved)


async def _move_jobs(connection: Connection, old: Target, new: str, *, now: datetime) -> bool:
    """Move the chat's jobs, jobs with the chat as target, and its owner's time zone."""
    owners = job_rules.moved_owners(old, new)
    for owner in sorted(owners.values()):
        await connection.fetch(_JOBS["lock_owner"], owner)
    locked = await connection.fetch(
        _JOBS["lock_of_chat"], list(owners), old.channel, old.account, old.chat
    )
    for row in locked:
        job = job_rules.retargeted(rows.job(row), old, new)
        owner, slug = owners.get(job.owner, job.owner), job.spec.slug
        if owner != job.owner:
            taken = await connection.fetch(_JOBS["slugs_of"], owner)
            slug = job_rules.free_slug(slug, {row["slug"] for row in taken})
            await connection.fetch(_JOBS["rename_in_log"], job.id, owner)
        moved = replace(job, owner=owner, spec=replace(job.spec, slug=slug), updated_at=now)
        if rows.is_readable(row):
            await connection.fetch(_JOBS["change"], job.id, rows.packed(moved))
        else:
            await connection.fetch(
                _JOBS["move_unreadable"],
                job.id,
                owner,
                slug,
                job_rules.words(slug, moved.spec.name),
                now,
                old.channel,
                old.account,
                old.chat,
                new,
            )
    await connection.fetch(_JOBS["move_zones"], list(owners), list(owners.values()))
    return bool(locked)


def _renamed(sessions: Sequence[Row], old: Target, new: str) -> dict[SessionKey, SessionKey]:
    """Return new keys by old keys, for the sessions that are named after their chat."""
    pairs = {
        SessionKey(row["key"]): rules.moved_key(
            SessionKey(row["key"]), AgentName(row["agent"]), old, row["thread"], new
        )
        for row in sessions
    }
    return {key: moved for key, moved in pairs.items() if moved != key}


async def _move_sessions(
    connection: Connection,
    sessions: Sequence[Row],
    renamed: Mapping[SessionKey, SessionKey],
    *,
    old: Target,
    new: str,
    now: datetime,
) -> None:
    """Move sessions into those with their new keys, creating these where needed."""
    if not renamed:
        return
    moving = [row for row in sessions if row["key"] in renamed]
    twice = [*moving, *moving]
    locked = await connection.fetch(
        _SQL["lock_sessions"],
        old.channel,
        old.account,
        new,
        [*renamed, *renamed.values()],
        [row["agent"] for row in twice],
        [row["thread"] for row in twice],
        [row["created_at"] for row in twice],
    )
    by_key = {SessionKey(row["key"]): row for row in locked}
    for before, after in renamed.items():
        await _merge(connection, by_key[before], by_key[after], now=now)
    keys = (list(renamed), list(renamed.values()))
    await connection.fetch(_SQL["rename_in_runs"], *keys)
    await connection.fetch(_SQL["rename_payers"], *keys)
    await connection.fetch(_SQL["rename_in_inbox"], *keys)
    await connection.fetch(_APPROVALS["rename"], *keys)
    await connection.fetch(_BACKGROUND["move"], *keys)
    await connection.fetch(_SQL["remember_moves"], *keys)
    for before in renamed:
        await connection.fetch(_SQL["remove_session"], before)


def _claim(row: Row) -> rules.Claim:
    owner = None if row["owner"] is None else NodeId(row["owner"])
    return rules.Claim(owner, row["fence"], row["epoch"])


async def _merge(connection: Connection, old: Row, new: Row, *, now: datetime) -> None:
    """Merge two locked sessions; runs and messages are renamed afterwards."""
    merged = rules.merged(_claim(old), _claim(new))
    if old["owner"] not in (None, merged.owner):
        cut = await connection.fetch(
            _SQL["end_runs"], old["key"], old["owner"], now, rules.MOVED_AWAY
        )
        await connection.fetch(_NODES["free_rows"], [row["id"] for row in cut], 1)
    for session in (old, new):
        await connection.fetch(
            _SQL["realign_runs"],
            session["key"],
            merged.owner,
            session["fence"],
            merged.fence,
            session["epoch"],
            merged.epoch,
        )
    put = await connection.row(
        _SQL["merge_history"],
        old["key"],
        old["epoch"],
        new["key"],
        new["epoch"],
        merged.epoch,
        old["summarized_upto"],
        new["summarized_upto"],
    )
    await connection.fetch(_SQL["move_old_history"], old["key"], new["key"])
    await connection.fetch(
        _SQL["merge_sessions"],
        old["key"],
        new["key"],
        merged.owner,
        merged.fence,
        merged.epoch,
        rules.merged_summary(old["summary"], new["summary"]),
        0 if put is None else put["upto"],
        rules.merged_pins(old["pinned"], new["pinned"]),
    )
