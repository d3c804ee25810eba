"""An agent of your own: a function that a gateway calls for each run.

Let a gateway use it, in this folder, and write to it::

    PYTHONPATH=. GOCLAW_AGENTS__MAIN__MODEL=python:my_agent:answer goclaw chat

Here it is called without a gateway. Prints::

    looking at the shelf
    Ordered 2 books, and a pen: receipt 17.
"""

import asyncio

from goclaw_py.agents.callable import CallableAgent
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.run_events import TextDelta
from goclaw_py.runs.agent_loop import Emit, LoopEvent, RunRequest, TextPart


async def place_order() -> int:
    """Do what must not be done twice. The result of a step must be JSON."""
    return 17


async def answer(request: RunRequest, emit: Emit) -> str:
    """Show progress, do the order once, and take in what was said meanwhile."""
    emit(TextDelta("looking at the shelf"))  # grows in the chat
    # After a crash this function is called again; the result of a finished step is stored.
    receipt = await request.step("order", place_order)
    wishes = [request.prompt, *(part.text for part in request.take_messages())]
    return f"Ordered {', and '.join(wishes)}: receipt {receipt}."


def show(event: LoopEvent) -> None:
    """Print what a chat would show."""
    if isinstance(event, TextDelta):
        print(event.text)


async def main() -> None:
    """Call the agent as a gateway does, with a message that arrives during the run."""
    request = RunRequest(
        RunId("run-1"),
        SessionKey("agent:main:console:direct:ann"),
        AgentName("main"),
        Trigger.CHAT,
        (TextPart("2 books"),),
        take_messages=lambda: (TextPart("a pen"),),
    )
    result = await CallableAgent(answer).run(request, show)
    print(result.text)


if __name__ == "__main__":
    asyncio.run(main())
