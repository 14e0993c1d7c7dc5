"""Social-Good: posts about articles on four networks, once each."""
