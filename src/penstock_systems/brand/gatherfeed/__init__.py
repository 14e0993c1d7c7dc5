"""GatherFeed: researches a keyword once in seven days, with its sources."""
