"""Stand-ins: seeded servers that answer as the outside services do, so that tests and demos need no internet."""
