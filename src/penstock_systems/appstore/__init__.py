"""App Store market intelligence: from a store chart to a ranked list of market opportunities, by itself."""
