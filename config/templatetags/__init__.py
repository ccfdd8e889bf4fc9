"""Template tags that every page has without loading them."""
