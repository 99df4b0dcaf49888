"""Long work of the workbench, done in a process of its own."""
