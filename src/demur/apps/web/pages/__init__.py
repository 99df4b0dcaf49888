"""One module per page of the workbench; each gives its pages and its actions."""
