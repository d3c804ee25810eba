"""Who may talk, how a chat queues, and who is told of troubles."""
