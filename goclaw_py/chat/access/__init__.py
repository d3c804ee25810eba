"""Who may talk, and which problems owners of a chat are notified of.

Start at ``access_control`` (who is admitted) and ``access_requests`` (who requests access).
``incident_alerts`` notifies owners of problems, ``access_texts`` has the sentences.
"""
