"""The web chat: conversations with their lines and files, and Markdown as HTML (SPEC CHAN-9).

The rules of SPEC CHAN-9:

Console (`goclaw chat`: streaming, Ctrl-C = `/stop`, again within 2 s or Ctrl-D leaves). On a
terminal the input line stays below all output and keeps what is typed; editing, history (the last
1,000 inputs, mode 0600, in the state folder), completion of commands, several lines (Alt-Enter,
backslash Enter); answers as Markdown (CHAN-3). In a pipe or with `TERM=dumb` plain lines and text;
of a sent file name and path. `--agent`: the agent of a new chat.

- **Dashboard.** The same channel, each conversation in a chat of its own. Answers are formatted
  from Markdown by the server (CHAN-3): other HTML in them is text, links have http, https or
  mailto, code is highlighted (common languages, up to 6,000 characters of code in a message) and
  has a button that copies it. Each tool call of a run is a card (name, result, link to the run),
  while it runs and, between the words before and after it, later; guests see none. A message
  without an answer keeps its reason; an answer that other messages separate from its question
  quotes it. A message that waits is grey and says its place in line; one that was dropped while it
  waited stays grey, with the reason, and can be sent again. A call that was denied is grey, too.
  What is typed outlives a reload and an expired sign-in, but not that it is an edit; a message that
  is refused comes back to the input line. The page fills the window: conversations, which are a
  drawer on a narrow screen, messages, which scroll, and the input line. The title of the tab is
  that of the conversation, with the number of messages that came while nobody saw it. Send becomes
  Stop while something runs. The server makes the conversation, also while it goes on: it looks as
  it does after a reload. The browser adds only what is on its way to the server, the words of
  answers in progress, and buttons. The newest 50 entries of the history are shown, and up to 800 on
  request. What was said before `/new` stays, above its answer, or a line, which says that the
  agent does not remember it. A run that went on after a person was asked shows all its calls that
  returned. What a run says, its calls and the answered questions about them stand in the order in
  which they happened: live, after a reload, while it asks, and after a stop.
- **Messages.** Each can be copied. The last one can be edited or its answer tried again: `/undo`
  (CMD-7) removes the turn, if it still is the last one, and all its messages wait again, with their
  files; an edit changes the text of one. A conversation can be forked at an answer (OPS-8), by
  people whose conversations are those of the console.
- **Notifications.** A browser shows answers, alerts and approvals while the page is in the
  background, after a person has turned that on in it. A page that is closed shows none: Web Push
  would send them through a server of the browser's maker, with keys that a gateway behind a
  firewall would have to register there.
- **Conversations.** A new one gets a name of its own. The message may choose the agent (on
  channels whose people are all operators), which is part of the session key: a conversation keeps
  its agent. The first words of its first message (60 characters, no command) are its title, unless
  a person has named the chat, until a person gives it one (80 characters, no invisible ones; ""
  brings back the first words). A title is a name (OPS-9) that is kept until its conversation is
  deleted. Invited people see the first words of theirs as titles; operators see these by the
  person. Conversations are listed by day, in the time zone of the browser, and found by words of
  their titles. Deleting asks first and offers the export. What runs is stopped; history, messages,
  grants, questions, title and, of its runs, prompts, steps and tool calls are deleted in one
  transaction. The usage stays, and so do messages that the log of a job or a heartbeat names, and
  files in the workspace. A run that has not ended after 15 s: refused.
- **Files.** Text and files, by button, drop or paste, are one message. At most `web.upload_mb`
  (20) each and `web.upload_files` (10) in a message, 200 of a person that wait; an empty file is
  refused. They lie in the state folder (mode 0700) under random names until the run takes them
  into the workspace (CHAN-6), 7 days at most. Only the content makes a file a picture (PNG, JPEG,
  GIF, WebP). The history keeps which files of the workspace came and went with an entry. The page
  gives only these, of the run in question; pictures are shown, all else is saved, under a policy
  (`sandbox`) that lets nothing in a file run.
- **Beside the history.** Commands, their answers and what failed runs said stand where they came
  also after a reload, as long as messages are kept (DB-5); the agent does not remember them. The
  answer to Stop is shown only when it comes: the run says that it was stopped. What was said while
  a message waited for its answer stands between them.
- **Buttons.** Messages have the buttons that they have in Telegram: retry, reminders (CRON-13);
  they go away on all terminals when used, or when a later message asks the same, and come back
  after a reload, at their message, until the gateway restarts. Questions about tool calls
  (AGENT-11) of the conversation are one card each at its end, in the order of the calls, with the
  arguments as names and values, long ones folded, until they are answered; then a line has the call
  and the answer. Those of other conversations, which the operator answers here, are messages with
  buttons: they say who asks, and for what.
"""
