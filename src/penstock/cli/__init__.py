"""The command line: noun then verb, tables for people, one JSON object for programs."""
