"""What /stop and /stopall do: who may stop what, here and on other nodes, and the answers.

Start at ``plan``, which decides what a stop cancels. ``execute`` carries out a whole stop: by
``local`` in this process, by ``remote`` on other nodes, by ``database`` what only that has.
``arrival`` executes a stop of a chat before its commit, ``rights`` knows who may stop what, and
``answer`` says what was stopped.

The rules of SPEC CMD-1:

`/stop` cancels per `cancel_one`, `/stopall` per `cancel_all`. A command is an inbox row of its
batch, acted on in the batch's order (it covers the messages before it), once per external id,
without waiting for the commit and also when the database is away. After its answer no run starts
with a message that it has cancelled, whatever happens to the lease meanwhile: a process that comes
back as another node first stores, under the id that it had, what it has stopped, and only then
releases its sessions. `/stopall`, `/new` and a stop of everything from outside also cover messages
that the process did not know of, in a transaction: all that waited in the session and were not
sent after it, such as what another node has stored or a commit without a response. A run whose end
is decided meanwhile still stores its answer; if it cannot (its lease ends, its process dies), no
run starts with its messages again: they end `cancelled`, and the chat is told which. What was
dropped before keeps its notice (QUEUE-5). The stop of a run (of a job and a subagent too) is
stored before its end is: if its process dies or loses its lease meanwhile, the run ends
`cancelled` and is not continued, and its occurrence ends `cancelled` at its next claim. It takes
effect within 200 ms of arrival while every lane is full. Its answer goes straight to the channel,
past the outbox and before all other messages, but within the pace of the chat (IO-4): what was
stopped, how many were dropped, or that nothing was running. Unsent answers to several stops of a
chat are combined into one message. If a stop has stopped only one run, and the growing reply of
that run ends within a second, that reply says so ("⏹ Stopped.") and there is no second message.

The rules of SPEC CMD-2:

How a stop is recognised, and what it meets.

- A command counts in any case, with surrounding blanks, with punctuation, text or newline after
  it, with `@thisbot` (ignored with another bot's name), in a caption, in a thread (that thread's
  session). It does not count in mid-sentence, and not in a later edit. Invisible characters
  (Unicode's format characters, control characters, variation selectors, letters without a shape)
  before, within and behind it, and full-width forms (`/stop`), change nothing; the same holds for
  bare stop words and for the bot's name at the beginning or end of a text. Behind marks of scripts
  that write no blank there (`/stop, 谢谢`) a command ends; around a bare stop word other signs and
  emoji change nothing. What a command stores (`/heartbeat add`) keeps them, as within an emoji.
- As a reply to a message or draft of a run, `/stop` stops that run, and so does the button below a
  growing reply (one whose run has ended stops no other).
- A message that is only "stop", "cancel" or such a word (ten languages and more) is `/stop` while
  something of its session runs or waits, also for an approval, else the agent's
  (`queue.stop_words`, default true). With a slash such a word (`/стоп`, `/cancel`) is always
  `/stop`. A message that is one word, nearly a command (`/stpo`), is answered with "Did you mean
  /stop?"; other unknown words with a slash are the agent's.
- After the chat's own runs and waiting messages `/stop` takes background subagents, whose parents
  may have ended, on whichever node; then job runs that deliver to this chat, also those that wait
  for their session or an answer. `/stopall` takes all of these subagents and job runs, also those
  of a node that does not answer or has just died: no other node continues them. The result of a
  subagent that has just ended, and is being stored, begins no turn then.
- With nothing else to stop, and always with `/stopall`, unsent messages of an answer that is
  already complete are dropped (`dropped`, error `stopped`), and the answer to the stop says how
  many. A stop from outside (CLI, API, dashboard) does the same (`unsent`). If the node that owns
  the session has just died, it waits up to 15 s until another one has taken the session over,
  stops it there and says what; so does a new conversation from outside. A node that is silent, or
  of which nobody takes over, is named.

The rules of SPEC CMD-3:

A cancelled run publishes an *empty outbound message*: a signal to the channel (never an outbox row)
with account, chat and thread — typing stops, status reaction is cleared, a streamed draft is closed
and marked (by an edit that is stored with the run's end, so that no crash leaves it open). A
stopped message ends with the commit of the `/stop`, even if its run takes long to end: no crash
makes it run again. After a crash start-up sends the signal for interrupted runs; a draft whose
messages run again stays open, and the next run continues in it; a draft that no run continues is
closed by an outbox row, or, if its id was never stored, searched and removed (IO-5).
"""
