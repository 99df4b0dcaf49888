"""The server of studies and its pages."""
