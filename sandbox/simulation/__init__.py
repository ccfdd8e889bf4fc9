"""Many charges and refunds through a provider that fails: then its money log is compared with what our books say."""
