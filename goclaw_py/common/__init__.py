"""Small tools without knowledge of the product."""
