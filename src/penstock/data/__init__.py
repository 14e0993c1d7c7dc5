"""The user's tables: reads that return lists, writes that join the unit of work, and upkeep for months."""
