"""Grouping the files of an answer into albums (SPEC CHAN-6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from goclaw_py.chat.channel import MOST_IN_ALBUM, Channel
from goclaw_py.core.errors import MaybeSent
from goclaw_py.core.messages import OutboundMessage


def in_albums(files: Sequence[OutboundMessage], channel: Channel | None) -> list[OutboundMessage]:
    """Return the messages with consecutive files of an answer grouped into albums.

    A file that its channel shows alone, or without a neighbour, stays a single message. Too many
    files are divided into albums of about the same size.
    """
    groups: dict[str, list[OutboundMessage]] = {}
    for place, message in enumerate(files):
        together = "" if channel is None or message.file is None else channel.album(message.file)
        groups.setdefault(together or f"alone {place}", []).append(message)
    said: list[OutboundMessage] = []
    for group in groups.values():
        size = ceil(len(group) / ceil(len(group) / MOST_IN_ALBUM))
        for begin in range(0, len(group), size):
            album = group[begin : begin + size]
            name = f"{album[0].run_id}/{len(said)}" if len(album) > 1 else ""
            said += [replace(message, album=name) for message in album]
    return said


async def send_together(channel: Channel, messages: Sequence[OutboundMessage]) -> list[str]:
    """Send a message, or several as an album; return the channel's ids. Raises ``ChannelError``."""
    if len(messages) == 1:
        return [await channel.send(messages[0])]
    ids = await channel.send_album(messages)
    if len(ids) != len(messages):
        raise MaybeSent(f"{len(ids)} ids for an album of {len(messages)}")
    return ids
