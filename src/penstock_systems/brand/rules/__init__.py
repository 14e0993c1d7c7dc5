"""The rules of the brand system that need no clock and no service: articles, checks, posts."""
