"""Topics: events with several subscriptions, and messages that are handled in the order of their key."""
