"""``goclaw chat``: chat through the running gateway, or through a temporary one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from goclaw_py.cli.context import cli, waited_for
from goclaw_py.cli.exits import ExitCode
from goclaw_py.model.session_keys import is_chat_name
from goclaw_py.web.sockets import is_answered, socket_path

if TYPE_CHECKING:
    from goclaw_py.config import Settings
    from goclaw_py.ports.control import Control, Terminals

CONSOLE_CHAT: Final = "local"

WAIT_S: Final = 60.0
"""How long to wait for answers after the end of piped input."""


def _chat(name: str) -> str:
    if not is_chat_name(name):
        raise typer.BadParameter("must be 1 to 64 characters of A-Z a-z 0-9 . _ -")
    return name


def chat(
    ctx: typer.Context,
    chat: Annotated[
        str, typer.Option(callback=_chat, help="Name of the chat. Each chat has its own session.")
    ] = CONSOLE_CHAT,
    wait: Annotated[
        float,
        typer.Option(min=0, help="Seconds to wait for answers after the end of piped input."),
    ] = WAIT_S,
) -> None:
    """Chat with the agent in this terminal.

    Ctrl-C stops the current run. Ctrl-C twice within 2 s, or Ctrl-D, quits.
    """
    settings = cli(ctx).settings()

    path = socket_path(settings.state_folder)
    if is_answered(path):
        answered = waited_for(_talk(path, chat, wait))
    else:
        answered = _talk_to_ourselves(settings, chat, wait)
    if not answered:
        typer.echo(f"goclaw: some messages got no answer within {wait:g} s (see --wait)", err=True)
        raise typer.Exit(ExitCode.FAILED)


async def _talk(path: Path, chat: str, wait_s: float) -> bool:
    """Chat through the running gateway."""
    from goclaw_py.cli.client.control import RemoteControl  # noqa: PLC0415

    async with RemoteControl(path) as remote:
        here = LocalChat(chat, wait_s)
        await here(remote, remote)
        return here.answered


def _talk_to_ourselves(settings: Settings, chat: str, wait_s: float) -> bool:
    """Chat through a temporary gateway, which shuts down when the chat ends."""
    from goclaw_py.cli import composition  # noqa: PLC0415
    from goclaw_py.cli.system.gateway import say  # noqa: PLC0415

    here = LocalChat(chat, wait_s)
    composition.run_gateway(settings, say=say, front=here, may_migrate=True)
    return here.answered


class LocalChat:
    """A chat in this terminal, which a gateway runs in its foreground.

    ``answered`` says afterwards whether all piped input was answered.
    """

    def __init__(self, chat: str, wait_s: float = WAIT_S) -> None:
        self._chat = chat
        self._wait_s = wait_s
        self.answered = True

    async def __call__(self, control: Control, terminals: Terminals) -> None:
        """Chat until the user quits."""
        from goclaw_py.cli.chats.conversation import TerminalConversation, settled  # noqa: PLC0415
        from goclaw_py.cli.terminal import standard_terminal  # noqa: PLC0415

        with standard_terminal() as terminal:
            conversation = TerminalConversation(terminals, terminal, self._chat)
            self.answered = await conversation.run(
                lambda: settled(control, self._chat), self._wait_s
            )
