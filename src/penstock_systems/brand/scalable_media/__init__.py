"""Scalable Media: decides what is researched, written, published and posted about, and has articles reviewed."""
