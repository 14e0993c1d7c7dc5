"""Files beside the database: bytes under a key, there whole or not at all."""
