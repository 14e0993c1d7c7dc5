"""Services: the parts of an app that may run apart, each with a database of its own."""
