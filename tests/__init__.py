"""Tests on real parts: PostgreSQL, broker, workers, provider sandbox, browser."""
