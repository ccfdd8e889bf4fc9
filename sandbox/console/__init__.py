"""The page at /sandbox/: an admin looks into the Stripe sandbox of a demonstration, and lets things go wrong there."""
