"""Alerts: what a person should know, told once, through whatever sinks the app names."""
