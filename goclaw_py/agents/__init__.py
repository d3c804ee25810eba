"""Level 3: the agent loops that come with the product."""
