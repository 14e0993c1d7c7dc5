"""Reading the results: queries, reports, commands."""
