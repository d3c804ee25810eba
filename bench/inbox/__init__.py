"""Messages into a queue on PostgreSQL: how many a second, how quickly, at what price."""
