"""The report: results as a page, as a terminal table, and as a verdict in plain words."""
