"""The demonstration: six days of the pipeline against a stand-in store, in about a minute."""
