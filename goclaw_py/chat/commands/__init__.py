"""Chat commands: a module for each, with its permission, its handler and its wording.

Start at ``command``, which says what a command is; ``registry`` finds them, and makes ``/help``.
``handlers`` executes them and buttons: ``retry`` is that below a failure.

The rules of SPEC CMD-5:

The commands are those of ``MENU`` and ``docs/guide/commands.md``; `/start` greets. `/help` is
grouped, with examples; `/status` has what runs here and for how long and what waits (messages by
their first words, subagents, jobs), for owners in a direct chat the names of other chats where
something runs, next jobs, context use, agent, model; `/usage` has what this conversation has used
today, for owners in a direct chat also what the agent has used in all. Only those who may talk to
the agent may use them; times are told as people write them, in the zone that the chat has chosen:
"today 08:59", "tomorrow 09:00", "yesterday 23:10", "Fri 09:00" within six days, else with the date;
without seconds; where it has chosen none, a sentence with a time names the zone, and a list does in
its last line. No text in a chat has a shell command; chats are named by their names, never by ids,
and to guests only their own. `/help` lists for guests only what they may use. Below a failure is a
button that tries the same messages again, once. Owners are people who were approved, and not as
guest; who are listed in `allow`; at the console. `/queue` shows mode and numbers, to owners with a
button for each mode; `/queue MODE` holds for the messages to come in this chat, through `/new` and
restarts; `/queue default` goes back to the settings; any other word gets one line that lists the
modes. Words and files behind `/new` are the first message of the new conversation, stored with it
in one transaction (if `/new` is refused, a message of the old one).
Words that any other command does not read, `/stop` too, and files, are named in its answer as not
read; the parameter of a link behind `/start` is not.
"""
