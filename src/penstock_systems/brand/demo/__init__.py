"""`make demo-brand`: a virtual week of two brands."""
