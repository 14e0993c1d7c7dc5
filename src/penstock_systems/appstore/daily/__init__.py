"""Once a day: snapshots, velocity, quality, upkeep."""
