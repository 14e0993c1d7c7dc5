"""The systems built on Penstock, and local servers that stand in for the outside services they talk to."""
