"""Incoming messages: from a channel to a run, and to its end.

A message has two lives in a process. Until it is committed and its turn in the order of its session
has come, it is an entry of a *mailbox* (``mailbox``). From then on it is a part of a *turn*: the
messages that one run answers. A turn is the only record of what happens to them. Everything that
asks where a message is, whether it is held, dropped or being answered, asks ``turns``, by run, by
row or by session. Commands and edits are done by the mailbox's entry and have no turn.

The way there: ``Channel`` delivers, ``ingestion`` admits (``ingress_filter``), commits, confirms,
then makes a turn of each row in the order of its ``mailbox`` and submits it to the dispatcher
(``provider_outage`` may hold it before). ``chat_run`` runs the agent (``runs.agent_executor``).
The way back: ``chat_run`` decides what is said (``runs.replies``) and stores the end with the reply
in one transaction; ``chat.outbound.outbox_sender`` sends it.

The states of a turn; the transitions are ``runs.turn_state.TRANSITIONS``, the events the methods of
``turns.Turns``. The database has only ``pending`` and ``done`` for a message, and the run.

========  ===========================================  ======================  ===================
state     meaning                                      in the database         events that follow
========  ===========================================  ======================  ===================
STORED    made of a committed row                      pending                 queue, hold, drop,
                                                                               merge
QUEUED    the scheduler has it: it collects, waits     pending                 start, end, drop,
          for its session, its agent or its lane                               merge, release
HELD      its agent's provider is down                 pending                 queue, expire, stop,
                                                                               drop, release
RUNNING   its task works; from ``Turn.begun`` on its   pending; run running    end, release
          start may be stored                          from ``begun`` on
ENDING    ended; that is being stored                  as before, or done      leave, undo, release
UNDOING   as ENDING, but its provider is down: its     pending; run becomes    replace, stop,
          messages get a new turn                      interrupted             release, drain
STOPPED   stopped while HELD or UNDOING                pending until the stop  close, release
                                                       is stored
DROPPED   never ran, no room was left; its sender is   pending until the       close, release
          not notified yet                             notice is stored
MERGED    another turn has its messages                as that turn            none
RELEASED  its messages wait in their mailbox again,    pending                 end, which
          or belong to another process                                         changes nothing
DONE      its end is stored                            done                    none
========  ===========================================  ======================  ===================

Who causes what:

- The *scheduler* decides when a turn starts, merges and ends. It reports to ``chat_run`` by the
  dispatcher: ``work`` is start, ``joined`` is merge, ``record`` is end or drop. Which of its states
  a QUEUED or RUNNING turn has, only the scheduler knows.
- *Steering*: a waiting turn is offered to a run (``offered``); when its agent takes it, it merges
  into the RUNNING turn. *Interrupt* and *speculative* runs (``restarted``): the run ends as
  interrupted, and the waiting turn gets its rows in front of its own; the earlier turn ends without
  them.
- *A provider outage*: a run that fails for it is undone; once that is stored, ``replace`` gives its
  messages to a new turn, HELD or QUEUED, and so those of the turns that wait behind it, which the
  scheduler gives back: what waits there would overtake it. New turns of the session, or of the
  agent, are HELD too. One is tried from time to time (queue); a success queues all; after
  ``outage_hold_s`` one expires.
- */stop* ends QUEUED and RUNNING turns through the scheduler, HELD and UNDOING ones here (stop).
  Their rows are ended in the database by the stop itself (``DatabaseStops.store``), before or after
  the end of the run; whichever comes first wins. What has no turn yet the mailbox cancels.
- *An edit* changes the text of its row in every turn whose run has not begun; later it is only
  noted in the history (``ingestion``).
- *A drain* ends QUEUED turns as interrupted without storing it, and releases HELD ones: the rows
  stay pending, and the next process, or another node, answers them. RUNNING turns may end; UNDOING
  ones end without being held. Notices of DROPPED turns are stored at once.
- *A fenced node* may not store an end, because another one owns the session. The turn and what
  waits behind it are released, and ``Mailboxes.release``, the only way back, lets their messages
  wait until a reload has read the order of the database. If the whole node has expired, everything
  is released without a mailbox (``Turns.release_all``), and a run that still ends changes nothing:
  that its turn is RELEASED is also how it knows that this process is another node by now.
- *A kill* leaves what the column says. Pending rows are claimed by the next process; a run that was
  running ends lost or continues from its steps (docs/adr/0029); a drop that later runs have passed
  is marked in its row, so that it is announced (``DropNotices.resume``) and not answered late.

What is known of a message beside its turn belongs to its mailbox, because it outlives the turn:

- The entry of a row stays until the next reload after its turn is DONE: a commit that was under way
  may list the row as older than its own, and a channel may deliver the message again.
- A stop that is not stored is a fact of the message. Its turn may end, be released or expire
  before; no run may start with the message then, here or under the next id of this process.

The rules of SPEC IO-2:

`kill -9` at any moment loses no accepted message: unfinished ones run again, in order, at most 3
attempts (an attempt counts when its run started; that of the first speculative run may be undone by
a crash of the database server before the run's next write); then `lost`, and the sender is told in
one message, with which tools those attempts had completed, which had failed and of which the
outcome is unknown. After the second crash on one message the session's other messages go first.
Messages that a run began with are one turn again after an interruption of it (crash, fail-over,
lost lease, shutdown, answer to an approval).
"""
