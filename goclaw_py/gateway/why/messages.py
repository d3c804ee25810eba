"""Why an incoming message was or was not answered.

It needs approvals, runs and nodes as well, so it is in no folder of a noun.
"""

from __future__ import annotations

from goclaw_py.core.chat_commands import our_command_of
from goclaw_py.core.display_names import short_id
from goclaw_py.core.messages import InboundMessage
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.text import sentence
from goclaw_py.core.time.texts import duration
from goclaw_py.gateway.why import outcomes, runs, waits
from goclaw_py.gateway.why.sources import (
    Sources,
    Verdict,
    brief,
    conclude,
    quoted,
    uncapitalized,
)
from goclaw_py.operations.approvals import why as approvals
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    SubjectKind,
)
from goclaw_py.records import DeadLetter
from goclaw_py.runs.speakers import is_empty
from goclaw_py.scheduler.operator_warnings import shell_command


def subject(letter: DeadLetter) -> Subject:
    """Return the message as a subject."""
    return Subject(SubjectKind.MESSAGE, str(letter.row.id), quoted(letter.row.message.text))


async def explain(src: Sources, letter: DeadLetter, about: Subject | None = None) -> Explanation:
    """Explain a message; ``about`` is the subject if that is another one."""
    about = about or subject(letter)
    row = letter.row
    if row.run_id is not None:
        found = await src.store.find_run(row.run_id)
        if found:
            return await runs.explain(src, found[0], about)
    verdict, steps = await _without_run(src, letter)
    chain = (runs.received(letter), *steps)
    return verdict.explanation(about, src.now(), chain)


async def _without_run(src: Sources, letter: DeadLetter) -> tuple[Verdict, list[ExplanationStep]]:
    row = letter.row
    if row.asking_run is not None:
        asked = await approvals.questions(src, row.asking_run, letter.session)
        if asked:
            verdict = await approvals.judge(src, asked, row.asking_run)
            return verdict, approvals.steps(asked)
    if row.outcome is None:
        verdict = await _pending(src, letter)
        return verdict, [ExplanationStep(None, verdict.code, uncapitalized(verdict.answer))]
    if row.outcome is Outcome.COMPLETED:
        verdict = await _handled(src, row.message)
    else:
        verdict = _ended(letter, row.outcome, row.reason)
    return verdict, [ExplanationStep(row.finished_at, verdict.code, uncapitalized(verdict.answer))]


def _ended(letter: DeadLetter, outcome: Outcome, reason: Reason | None) -> Verdict:
    end = outcomes.FailedOutcome(outcome, reason, agent=letter.agent)
    answer = f"The message {quoted(letter.row.message.text)} {outcomes.clause(end)}."
    return conclude(outcomes.code(end), answer, *outcomes.cures(end, retry=letter.row.id))


async def _handled(src: Sources, message: InboundMessage) -> Verdict:
    """Explain a message that was handled without a run."""
    if message.edits is not None:
        return await _edited(src, message)
    if our_command_of(message) is not None:
        name = message.text.split()[0] if message.text.split() else "a button"
        return conclude("message.command", f"It is a command ({name}), and was carried out.")
    if is_empty(message):
        what = message.unsupported or "an empty message"
        again = Cure("Send it as text, a picture or a file")
        answer = f"It has no content that an agent can read ({what}); its sender was told so."
        return conclude("message.unreadable", answer, again)
    return conclude("message.handled", "It was handled without a run.")


async def _edited(src: Sources, message: InboundMessage) -> Verdict:
    """Explain an edit, which changes a waiting message and is only recorded later (CHAN-6)."""
    target = message.target
    original = await src.store.letter_named(target.channel, target.account, message.edits or "")
    if original is not None and original.row.run_id is not None:
        answer = (
            "It is an edit of a message that a run had begun with, so it was only noted in the "
            "history; no run answers it."
        )
        again = Cure("Send the text as a new message")
        return conclude("message.edit_too_late", answer, again)
    see = (Cure("That message", f"goclaw why message:{original.row.id}"),) if original else ()
    answer = "It is an edit of a message that still waited, and replaced its text."
    return conclude("message.edit", answer, *see)


# ---------------------------------------------------------------------------- not done


async def _pending(src: Sources, letter: DeadLetter) -> Verdict:
    dropped = src.dropped(letter)
    if dropped is not None:
        return _ended(letter, dropped.outcome, dropped.reason)
    if src.container is None:
        return await _without_gateway(src, letter)
    turn = src.turn(letter)
    if turn is not None and turn.kept_since is not None and src.view(turn.id) is None:
        return _held_for_provider(src, letter)
    if src.container.dispatcher.draining:
        restart = Cure("Start the gateway again", "goclaw run")
        answer = "The gateway is shutting down; the message is kept and runs after the restart."
        return conclude("waits.restart", answer, restart)
    view = None if turn is None else src.view(turn.id)
    if turn is None or view is None:
        return await _elsewhere(src, letter)
    if view.waits_for is None:
        answer = f"Run {short_id(view.id)} has accepted it and is in progress."
        follow = Cure("Follow the run live", shell_command("runs", "follow", letter.session))
        return conclude("run.running", answer, follow)
    return await waits.judge(src, view)


async def _without_gateway(src: Sources, letter: DeadLetter) -> Verdict:
    session = await src.store.session(letter.session)
    if session is not None and session.owner and await src.is_reachable(session.owner):
        return _of_node(session.owner)
    answer = "It is stored and waits: no gateway is running here."
    return conclude(
        "waits.gateway", answer, Cure("Start a gateway; it answers the message", "goclaw run")
    )


def _of_node(node: str) -> Verdict:
    answer = f"Its conversation belongs to node {node}, which processes it."
    show = Cure(
        "The status of that node; run goclaw why there for details", f"goclaw why node:{node}"
    )
    return conclude("waits.node", answer, show)


async def _elsewhere(src: Sources, letter: DeadLetter) -> Verdict:
    """Explain a message that this gateway does not answer."""
    session, container = await src.store.session(letter.session), src.container
    owner = None if session is None else session.owner
    if owner and container is not None and owner != container.node():
        if await src.is_reachable(owner):
            return _of_node(owner)
        answer = f"It waits until another node takes over from node {owner}, which has expired."
        return conclude("waits.recovery", answer, Cure("The nodes", "goclaw nodes list"))
    target = letter.row.message.target
    if src.rules_of(target) is None:
        place = f"{target.channel}/{target.account}"
        answer = f"It waits for a gateway with the account {place}; this one has none."
        cure = Cure(f"Set up {place} in goclaw.toml and start the gateway again")
        return conclude("waits.account", answer, cure)
    answer = "It is stored, and its run is about to be created."
    return conclude(
        "waits.soon", answer, Cure("Check again", shell_command("queue", letter.session))
    )


def _held_for_provider(src: Sources, letter: DeadLetter) -> Verdict:
    """Explain a message that waits because the provider of its agent is down (SPEC AGENT-8)."""
    assert src.container is not None
    views = {view.agent: view for view in src.container.outages.views()}
    outage = views.get(letter.agent)
    state = "is unavailable"
    if outage:
        state = f"has been unavailable for {duration(outage.for_s)}: {brief(outage.cause)}"
    answer = sentence(
        f"the provider of agent {letter.agent} {state}; the message is kept and "
        "answered when the provider is back"
    )
    cures = (
        Cure("Check key, address and model of the agent", "goclaw doctor"),
        Cure("Or cancel the message: /stop in the chat", shell_command("stop", letter.session)),
    )
    return conclude("waits.outage", answer, *cures)
