"""Values and pure rules: nothing here waits, reads a clock or touches a disk."""
