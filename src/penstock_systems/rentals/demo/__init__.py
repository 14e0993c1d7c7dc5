"""Five virtual days of the collector over a generated city, judged by what is true of it."""
