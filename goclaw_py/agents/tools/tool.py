"""The base class of all tools."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, TypeVar

from goclaw_py.agents.tools.arguments import Arguments, read, schema
from goclaw_py.agents.tools.permissions import Permissions
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.workspace.files import Workspace, WorkspaceError
from goclaw_py.runs.toolbox import ToolContext, ToolSpec

A = TypeVar("A", bound=Arguments)
T = TypeVar("T")

CHECKLIST_IS_OF_OWNERS: Final = (
    "nothing was changed: the heartbeat checklist changes only for an owner, in their direct chat. "
    "Elsewhere an owner may write /heartbeat add or /heartbeat done. Tell the user."
)


class Tool(ABC, Generic[A]):
    """One tool. It handles concurrent calls and keeps no state of runs.

    ``description`` and the field descriptions of ``arguments`` are written for language models.
    ``side_effects``, ``acts_on_run`` and ``idempotent`` are as in ``ToolSpec``.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    side_effects: ClassVar[bool] = True
    acts_on_run: ClassVar[bool] = False
    idempotent: ClassVar[bool] = False
    arguments: type[A]

    @abstractmethod
    async def call(self, arguments: A, here: ToolContext) -> str:
        """Execute the call and return the text for the model. Raises ``ToolFailed``."""

    def permitted(self, permissions: Permissions) -> Tool[Any] | None:
        """Return the tool for an agent with these permissions; None if it may not call it."""
        return self if permissions.allows(self.name) else None

    @cached_property
    def spec(self) -> ToolSpec:
        """The specification of the tool that is sent to models."""
        return ToolSpec(
            self.name,
            self.description,
            schema(self.arguments),
            self.side_effects,
            self.acts_on_run,
            self.idempotent,
        )

    async def use(self, given: Mapping[str, object], here: ToolContext) -> str:
        """Validate the arguments and execute the call. Raises ``ToolFailed``."""
        return await self.call(read(self.arguments, given), here)


async def in_workspace(here: ToolContext, work: Callable[[Workspace], T]) -> T:
    """Run file operations in a thread. Raises ``ToolFailed`` if they fail.

    A cancelled caller waits until the thread has ended, so that nothing is written after the end of
    the run. A second cancellation stops waiting: a disk that hangs must not block a shutdown.
    """
    loop = asyncio.get_running_loop()
    done = loop.run_in_executor(None, work, Workspace(here.workspace))
    # Always retrieve the exception: asyncio would log it for cancelled runs as never retrieved.
    done.add_done_callback(asyncio.Future.exception)
    try:
        return await asyncio.shield(done)
    except WorkspaceError as error:
        raise ToolFailed(str(error)) from error
    except asyncio.CancelledError:
        await asyncio.wait([done])
        raise
