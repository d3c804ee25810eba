"""Jobs: what people do with them, when they are due, and what becomes of that."""
