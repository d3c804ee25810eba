"""Chats: who has access, how their messages queue, who is notified of problems.

Start at ``access_control`` (who is admitted) and ``access_requests`` (who requests access).
``session_settings`` has a session's queue mode and limits, ``incident_alerts`` notifies owners of
problems, ``access_texts`` has the sentences.
"""
