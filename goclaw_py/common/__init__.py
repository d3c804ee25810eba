"""Small tools that know nothing of the product: clocks, retries, text, time zones, durations."""
