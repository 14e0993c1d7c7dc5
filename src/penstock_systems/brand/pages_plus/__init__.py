"""Pages-Plus: publishes articles on the sites of brands, as static pages and through Ghost, once each."""
