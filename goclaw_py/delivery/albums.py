"""Which files of one answer are sent together (SPEC CHAN-6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from goclaw_py.model.errors import MaybeSent
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.ports.channel import MOST_IN_ALBUM, Channel


def in_albums(files: Sequence[OutboundMessage], channel: Channel | None) -> list[OutboundMessage]:
    """The messages with the files of one answer, those behind each other that make an album.

    A file that its channel shows alone, or that finds no other, stays a message of its own. More
    than fit into an album are spread over several of about the same size.
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
    """Send a message, or several as an album; their ids at the channel. Raises ``ChannelError``."""
    if len(messages) == 1:
        return [await channel.send(messages[0])]
    ids = await channel.send_album(messages)
    if len(ids) != len(messages):
        raise MaybeSent(f"{len(ids)} ids for an album of {len(messages)}")
    return ids
