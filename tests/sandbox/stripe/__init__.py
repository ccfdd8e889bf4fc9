"""The Stripe sandbox as its users meet it: a real process, Stripe's own library, no Django."""
