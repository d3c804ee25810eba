"""Run the conformance suite for channels against the folder channel."""

import asyncio
from itertools import count
from pathlib import Path

import pytest
from folder_channel import FolderChannel, factory

from goclaw_py.core.messages import Target
from goclaw_py.testing.conformance import Check, Offer, Rig, SeenMessage, Trouble, checks_for
from goclaw_py.testing.loop import VirtualLoop


class FolderRig(Rig):
    offers = frozenset({Offer.SETTINGS})
    troubles = frozenset({Trouble.AWAY})
    ann, ben = Target("folder", "default", "ann"), Target("folder", "default", "ben")
    kind = factory

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers = folder, count()
        for name in ("in", "out"):
            (folder / name).mkdir()
        self.channel = FolderChannel(folder)

    def say(self, chat: Target, text: str) -> None:
        (self._folder / "new").write_text(text, "utf-8")
        name = f"{chat.chat}.{next(self._numbers):06}"
        (self._folder / "new").rename(self._folder / "in" / name)

    def unconfirmed(self) -> int:
        return len(list((self._folder / "in").glob("*")))

    def seen(self, chat: Target) -> list[SeenMessage]:
        files = sorted((self._folder / "out").glob(f"{chat.chat}.*"))
        return [SeenMessage(file.name, file.read_bytes().decode()) for file in files]

    async def restart(self) -> None:
        await self.channel.close()
        self.channel = FolderChannel(self._folder)

    async def cause(self, trouble: Trouble) -> None:
        (self._folder / "out").rename(self._folder / "away")

    async def calm(self) -> None:
        (self._folder / "away").rename(self._folder / "out")


@pytest.mark.parametrize("check", checks_for(FolderRig), ids=str)
def test_the_folder_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(check(FolderRig(tmp_path)))
