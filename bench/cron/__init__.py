"""What the next occurrence of a cron expression costs, beside other libraries."""
