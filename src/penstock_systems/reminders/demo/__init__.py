"""`make demo-reminders`: four virtual weeks over a change of clocks, with 20 kills of the process that sends."""
