"""HEARTBEAT.md: its items, their intervals and check marks (SPEC HB-3).

Start at ``checklist``.

The rules of SPEC HB-3:

HEARTBEAT.md missing or without meaningful content → skip. Not meaningful: blank lines, headings,
HTML comments (also over lines; an unclosed one hides only its own line), empty bullets and
checkboxes, items that are ticked off with all that is in them, rules, empty quotes, front matter
at the begin of the file, tables without a filled row, code blocks that have only such lines (and
comments, if they are marked as Markdown). Items may have an interval of their own (`- every 2h:
…`, `- weekdays 09:00: …`); only what is due goes into the prompt, and nothing due → skip. The
shipped `HEARTBEAT.md.example` costs no call until edited. What it says is done without a person,
so its agent changes it (tool `heartbeat`, and `write_file` and `edit_file` of any file with this
name) only in a direct chat of an owner, in jobs that an owner created there or an operator
created, and in heartbeat runs. For guests, in groups, where anybody's words are in the
conversation, and in runs of subagents and `delegate` the call fails with a sentence; an owner
writes `/heartbeat add` or `done` there.
"""
