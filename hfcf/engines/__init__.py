"""Batched inference: one engine for each kind of model, looked up by its settings, one per process and device."""
