"""Runs the command: `python -m demur`."""

from demur.apps.cli.main import run

run()
