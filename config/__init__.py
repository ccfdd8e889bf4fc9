"""Settings, addresses, database logins, and what every page shares."""
