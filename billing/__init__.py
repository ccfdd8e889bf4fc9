"""The domain that plugs in: customers, invoices, credit, payments, and the tools over them."""
