"""Rental listings from many sources: changes, homes offered on several portals, saved searches and notices."""
