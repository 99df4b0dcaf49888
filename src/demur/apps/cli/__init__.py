"""The command line: it only wires."""
