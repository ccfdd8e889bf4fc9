"""Demo data: customers of a company that does not exist, whose past payments exist at the Stripe sandbox too."""
