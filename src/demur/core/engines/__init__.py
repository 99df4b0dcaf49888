"""Where rows are counted."""
