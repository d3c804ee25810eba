"""What is known of a chat: who may talk in it, how its messages queue, who is told of problems.

Start at ``access_control`` (who is admitted) and ``access_requests`` (who asks to be).
``session_settings`` has a session's queue mode and limits, ``incident_alerts`` tells owners of
problems, ``access_texts`` has the sentences.
"""
