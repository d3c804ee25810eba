"""Parses updates of the Bot API. Start at ``reader``.

The rules of SPEC CHAN-6:

Topics, files and other kinds of messages.

- **Topics.** Each has a session of its own, and replies stay in their topic. What is for a closed
  or deleted topic (a reply, an alert, the result of a job) goes to the general topic of its chat,
  as a reply to nothing; once for each time a line below tells whose it was, by the names of topic
  and chat. Names come from the service messages of topics and from messages in them. A refusal or
  a service message marks the topic as gone, in the database; it is not tried again until somebody
  writes in it or it is reopened. If the general topic refuses it too, it is dead, and alerts and
  results of jobs are told elsewhere (HB-7, CRON-13).
- **Files that come in.** An album is one message. Photos, documents and voice become attachments,
  downloaded into the workspace when their run begins. A `models` agent sees the first 20 photos of
  a request, each of at most 5 MB, as far as they have 15 MB together; further ones are only
  mentioned. Locations, contacts, polls and checklists are told as text. Other kinds get a polite
  line, and are named (`[paid media]`) below a caption. In a reply each kind is named, with what is
  known of it (`[a dice: 🎲 3]`), and so is a service message; of a pin what is pinned comes too, of
  a reply to a task or an option which one it is, of a post in a public channel whose text is not
  sent its address. The agent reads the captions of an album above their files. An update that is
  for nobody is logged.
- **Formatting of what comes in.** Commands, mentions and stop words are found in the words that
  people see. The agent, the history, quotes and forwards have them as Markdown: a link, or a
  button below a post, with its address unless the words are the address; a mention of a person
  without a username; code with its language, quotes, spoilers, bold, italic and struck-out text.
  Signs are only added. Offsets outside of a text, or within a character, cost no word.
- **Files that go out.** Only files of the workspace are sent. Files of one answer that the channel
  shows together are one album of 2 to 10, in the order in which the agent sent them, the first one
  as the reply (Telegram: photos with videos, documents, music; voice messages are alone; more are
  spread over several albums). An album is claimed and sent as a whole and marked file by file. One
  that is refused is sent file by file, so that only the file in question fails, with its line
  (IO-3). A channel without albums gets files one by one.
- **Edits and replies.** An edit updates a message that waits; otherwise it is noted in the
  history, unless its words, formatting and files are those of the version before it. What a
  message replies to is context, whatever it is, also in another chat: its text up to 4,096
  characters or the selected part of it (what is cut says how much is missing), its file, which is
  downloaded like one of the message's own and marked as belonging to it, a location, contact or
  poll as text, any other kind by its name (`[a dice]`).
"""
