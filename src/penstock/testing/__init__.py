"""What tests of a pipeline need: virtual time, in which days pass in milliseconds and every run repeats."""
