"""``goclaw chat``: chat through the running gateway, or through a temporary one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import cli, no_such_agent, waited_for
from goclaw_py.cli.exits import ExitCode
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.outcomes import Outcome, outcome_text
from goclaw_py.core.session_keys import is_chat_name
from goclaw_py.core.text import count
from goclaw_py.web.sockets import is_answered, socket_path

if TYPE_CHECKING:
    from goclaw_py.chat.terminals import Terminals
    from goclaw_py.cli.chats.conversation import TerminalConversation
    from goclaw_py.config import Settings
    from goclaw_py.core.ids import AgentName
    from goclaw_py.operations.control import Control

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
    agent: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.agents,
            help="Agent of a new chat. A chat keeps its agent (default: that of the settings).",
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(min=0, help="Seconds to wait for answers after the end of piped input."),
    ] = WAIT_S,
) -> None:
    """Chat with the agent in this terminal.

    It goes through the running gateway, and waits for one that restarts. Without one, it starts a
    gateway that ends with the chat.

    Enter sends; Alt-Enter, or Enter after a backslash, begins a new line. Tab completes commands.
    Ctrl-C stops the current run. Ctrl-C twice within 2 s, or Ctrl-D, quits.
    """
    settings = cli(ctx).settings()

    if agent is not None and agent not in settings.agents:
        raise no_such_agent(agent, settings.agents)
    path = socket_path(settings.state_folder)
    here = LocalChat(settings.state_folder, chat, wait, agent)
    if is_answered(path):
        answered = waited_for(_talk(path, here))
    else:
        answered = _talk_to_ourselves(settings, here)
    if not answered:
        typer.echo(f"goclaw: some messages got no answer within {wait:g} s (see --wait)", err=True)
        raise typer.Exit(ExitCode.FAILED)
    if here.failed:
        words = outcome_text(here.failed)
        typer.echo(f"goclaw: a run ended without its answer: {words}", err=True)
        raise typer.Exit(ExitCode.FAILED)


async def _talk(path: Path, here: LocalChat) -> bool:
    """Chat through the running gateway."""
    from goclaw_py.cli.client.control import RemoteControl  # noqa: PLC0415
    from goclaw_py.cli.terminal import is_full_terminal  # noqa: PLC0415

    async with RemoteControl(path) as remote:
        if is_full_terminal():
            for line in await here.greeting(remote):
                typer.echo(line)
        await here(remote, remote, outlives=True)
        return here.answered


def _talk_to_ourselves(settings: Settings, here: LocalChat) -> bool:
    """Chat through a temporary gateway, which shuts down when the chat ends."""
    from goclaw_py.cli import composition  # noqa: PLC0415

    composition.run_gateway(settings, front=here, may_migrate=True)
    return here.answered


class LocalChat:
    """A chat in this terminal, which a gateway runs in its foreground.

    ``folder`` is where the history of the input line is kept. ``agent`` is the choice for a new
    chat. ``answered`` says afterwards whether all piped input was answered.
    """

    def __init__(
        self,
        folder: Path,
        chat: str = CONSOLE_CHAT,
        wait_s: float = WAIT_S,
        agent: str | None = None,
    ) -> None:
        self._folder = folder
        self._chat = chat
        self._wait_s = wait_s
        self._agent = agent
        self.answered = True
        self.failed: Outcome | None = None
        """See ``TerminalConversation``."""

    async def __call__(
        self, control: Control, terminals: Terminals, *, outlives: bool = False
    ) -> bool:
        """Chat until the user quits; see ``TerminalConversation``.

        Returns whether the time to wait for answers is over: a gateway that ends with the chat
        interrupts their runs, and the next one answers.
        """
        from goclaw_py.cli.chats.conversation import agent_for, settled, unsent  # noqa: PLC0415

        agent = await agent_for(control, self._chat, self._agent)
        missed = 0
        with suppress(StoreUnavailable):
            missed = await unsent(control, self._chat)
        with self._conversation(terminals, agent, outlives=outlives) as conversation:
            self.answered = await conversation.run(
                lambda: settled(control, self._chat), self._wait_s, missed
            )
            self.failed = conversation.failed
        return not self.answered

    async def greeting(self, control: Control) -> list[str]:
        """Return lines that say which chat this is, and what was answered before."""
        from goclaw_py.cli.chats.conversation import agent_for, unsent  # noqa: PLC0415

        agent = await agent_for(control, self._chat, self._agent)
        who = "" if agent is None else f" with agent {agent}"
        lines = [f"Chat {self._chat}{who}. /help lists the commands, Ctrl-D exits."]
        waiting = await unsent(control, self._chat)
        if waiting:
            lines.append(f"{count(waiting, 'message')} came while no terminal was open:")
        return lines

    @contextmanager
    def _conversation(
        self, terminals: Terminals, agent: AgentName | None, *, outlives: bool
    ) -> Iterator[TerminalConversation]:
        from goclaw_py.cli.chats.conversation import TerminalConversation  # noqa: PLC0415
        from goclaw_py.cli.terminal import is_full_terminal, standard_terminal  # noqa: PLC0415

        if not is_full_terminal():
            with standard_terminal() as terminal:
                yield TerminalConversation(
                    terminals, terminal, self._chat, agent=agent, outlives=outlives
                )
            return
        # Both take long to import.
        from goclaw_py.cli.chats.editor import HISTORY_FILE, editor_terminal  # noqa: PLC0415
        from goclaw_py.cli.chats.markdown import MarkdownTranscript  # noqa: PLC0415

        with editor_terminal(self._folder / HISTORY_FILE) as editor:
            transcript = MarkdownTranscript(editor.show_draft)
            yield TerminalConversation(
                terminals, editor, self._chat, transcript, agent, outlives=outlives
            )
