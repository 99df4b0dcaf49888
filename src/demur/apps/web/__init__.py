"""The workbench: runs, comparisons and errors in the browser, served on this machine."""
