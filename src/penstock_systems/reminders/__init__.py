"""Reminders: notices with a due time by mail, webhook and chat, each sent once through each channel."""
