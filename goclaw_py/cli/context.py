"""What every command needs: the settings, and the gateway or else the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from goclaw_py.config import Settings
    from goclaw_py.ports.control import Control

T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="For programs: what the HTTP API answers.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")]


@dataclass(frozen=True, slots=True)
class Cli:
    """The global options."""

    config: Path | None

    def settings(self) -> Settings:
        """Read the settings. Raises ``SettingError``."""
        from goclaw_py.config import load  # noqa: PLC0415  (not needed for --help)

        return load(self.config)

    def ask(self, question: Callable[[Control], Awaitable[T]]) -> T:
        """Ask the gateway, or the database if no gateway runs."""
        settings = self.settings()

        async def asked() -> T:
            async with connected(settings) as control:
                return await question(control)

        return asyncio.run(asked())


def cli(ctx: typer.Context) -> Cli:
    """The global options of a command."""
    found = ctx.obj
    assert isinstance(found, Cli)
    return found


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[Control]:
    """The gateway of the state folder, or the database alone if none runs here."""
    from goclaw_py.web.sockets import is_answered, socket_path  # noqa: PLC0415

    path = socket_path(settings.state_folder)
    if is_answered(path):
        from goclaw_py.cli.remote import RemoteControl  # noqa: PLC0415

        async with RemoteControl(path) as remote:
            yield remote
    else:
        from goclaw_py.cli import composition  # noqa: PLC0415

        async with composition.open_control(settings) as control:
            yield control


async def is_live(control: Control) -> bool:
    """Whether a gateway answers; else it is the database that does."""
    from goclaw_py.ports.control import NoGateway  # noqa: PLC0415

    try:
        await control.status()
    except NoGateway:
        return False
    return True


def named(text: str) -> str:
    """Check an id or a name from the command line: a blank one would fit everything."""
    if not text.strip():
        raise typer.BadParameter("must not be blank")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise typer.BadParameter("is not text in the encoding of this terminal")
    return text.strip()


Name = Annotated[str, typer.Argument(callback=named)]
