"""Small protocols in the domain's verbs: what the engine asks of a clock, a store or a transport."""
