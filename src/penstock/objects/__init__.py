"""Objects: state with a name, one event at a time, and an alarm."""
