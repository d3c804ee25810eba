"""Makes the pictures of the guides from the running product: ``make screenshots``."""
