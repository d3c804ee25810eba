"""Lanes and session queues: which run starts now, which waits, which is cancelled.

Start at ``scheduler`` (the interface) and ``state_machine`` (every transition). Both are pure:
methods take ``now`` and return ``effects``. ``dispatcher`` carries them out for the gateway,
``embedded`` for other programs. The package depends on no other feature.

The rules of SPEC LANE-8:

A child run that its parent awaits, in the lane of the parent or of an ancestor that waits for it,
runs inside that slot, one at a time, and needs no slot of an agent that one of them has. Any other
child queues. If it could then never start, because runs that wait for it hold all that it needs, it
runs inside its parent's slot; if it needs a session or an agent, it ends rejected. So no deadlock
is possible, for subagents and delegates alike. A child whose parent has ended keeps the parent's
slot. Depth ≤ 3, 8 unfinished children per run (settings); a run that is being stopped or has ended
gets no more. Stopping a run stops the children that it awaits, with the same outcome.

The rules of SPEC QUEUE-4:

Beyond the source documents: `collect` (messages that queued up during a run become one follow-up
turn, order kept; no message overtakes one that waits for a turn of its own) and `steer` (handed to
the active run between two model requests if the loop supports it, else queued). A message that a
run takes in ends with it: answered, stopped or failed together; a stopped run takes nothing in.
Until that end is stored it is a message that waits: after a crash or a shutdown it runs again, no
attempt counted; if the run is continued (AGENT-10), as part of that run, told once, else as part of
the turn that begins again. The reply goes to the last message of the turn. A run whose answer is
complete takes in no more messages.

The rules of SPEC QUEUE-8:

(of what the sender may stop, CMD-6) `cancel_one` = the oldest run not already stopping, in start
order; if none is ready or running, the oldest waiting or debouncing message; while a run is still
stopping and no other is running, it cancels nothing and reports "already stopping". A run that is
being interrupted (by a shutdown or a lost lease) counts as running: a stop ends its messages too.
`cancel_all` = every run, the whole queue and the debounce buffer of that session. Both include the
live descendants of what they cancel, `cancel_all` also those of ended runs. Both return counts and
ids.

The rules of SPEC QUEUE-5:

Capacity counts *waiting* messages; default 10. Drop `old` (default): the oldest waiting one ends
`QueueDropped`, the new one is added. `new`: the incoming one ends `QueueFull`. Notices are
combined: one per session and 10 s, with count and first words. A dropped message ends with its
notice, so no message is dropped silently: if the process dies before that, the node that takes over
sends the notice if a newer message has started by then, or everything was stopped; else the message
runs after all, in its order. The same in `interrupt`.
"""
