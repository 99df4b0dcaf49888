"""Files and frames become one validated, judged table; nothing here knows of scores."""
