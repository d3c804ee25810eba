"""What every tool is."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from goclaw_py.model.errors import ToolFailed
from goclaw_py.ports.tools import ToolContext, ToolSpec
from goclaw_py.tools.arguments import Arguments, read, schema
from goclaw_py.tools.permissions import Permissions
from goclaw_py.workspace import Workspace, WorkspaceError

A = TypeVar("A", bound=Arguments)
T = TypeVar("T")


class Tool(ABC, Generic[A]):
    """One tool. It serves any number of calls at once and keeps nothing about runs.

    ``description`` and the descriptions of the fields of ``arguments`` are written for models.
    ``side_effects`` is as in ``ToolSpec``.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    side_effects: ClassVar[bool] = True
    arguments: type[A]

    @abstractmethod
    async def call(self, arguments: A, here: ToolContext) -> str:
        """Do it, and return what the model is to read. Raises ``ToolFailed``."""

    def permitted(self, permissions: Permissions) -> Tool[Any] | None:
        """The tool as an agent with these permissions may call it; None if it may not."""
        return self if permissions.allows(self.name) else None

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return ToolSpec(self.name, self.description, schema(self.arguments), self.side_effects)

    async def use(self, given: Mapping[str, object], here: ToolContext) -> str:
        """Call it with arguments that nobody has checked. Raises ``ToolFailed``."""
        return await self.call(read(self.arguments, given), here)


async def in_workspace(here: ToolContext, work: Callable[[Workspace], T]) -> T:
    """Work on files in a thread. Raises ``ToolFailed`` if they cannot be had.

    Whoever is cancelled waits until the thread has ended, so that nothing is written for a run that
    is over. A second cancellation gives it up: a disk that hangs must not hold a shutdown.
    """
    loop = asyncio.get_running_loop()
    done = loop.run_in_executor(None, work, Workspace(here.workspace))
    # Fetched in any case: asyncio would report the error of a stopped run as forgotten.
    done.add_done_callback(asyncio.Future.exception)
    try:
        return await asyncio.shield(done)
    except WorkspaceError as error:
        raise ToolFailed(str(error)) from error
    except asyncio.CancelledError:
        await asyncio.wait([done])
        raise
