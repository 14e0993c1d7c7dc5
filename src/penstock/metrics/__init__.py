"""Data points: numbers with words to group them by, kept beside the history and never in the way of who writes them."""
