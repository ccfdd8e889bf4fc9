"""A stand-in for Stripe: its HTTP API, test cards, events and webhooks, with money that is only written down.

A process of its own with its own state; it knows nothing of Django or of the other apps.
"""
