"""The ``inbox``, ``outbox`` and ``queue`` commands: waiting and failed messages."""
