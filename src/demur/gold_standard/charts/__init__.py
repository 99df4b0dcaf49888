"""Charts of gold standards."""
