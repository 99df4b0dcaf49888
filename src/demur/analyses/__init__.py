"""Questions that need several measures or a model."""
