"""The offline model: a deterministic planner that stands in for a language model and says so (docs/offline-model.md)."""
