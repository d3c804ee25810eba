"""Small tools without knowledge of the product: clocks, retries, text, time zones, durations."""
