"""What goes out: the outbox and growing replies."""
