"""The interactive error-return plot."""
