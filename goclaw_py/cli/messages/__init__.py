"""The ``inbox``, ``outbox`` and ``queue`` commands: messages that wait or failed."""
