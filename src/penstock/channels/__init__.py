"""Channels: one notice to one receiver by mail, webhook or chat, and an outcome that says whether to send it again."""

from penstock.channels.apprise import Apprise
from penstock.channels.channel import Channel, Flight, Notice, Outcome
from penstock.channels.chats import Discord, Slack, Telegram
from penstock.channels.decision import NextStep, Recorded, next_step
from penstock.channels.mail import check_address
from penstock.channels.make import make_channel
from penstock.channels.posting import id_of, post
from penstock.channels.quiet import QuietHours, join_notices, next_digest, parse_quiet, parse_time, send_at
from penstock.channels.resend import MailEvent, Resend, read_mail_event
from penstock.channels.signing import new_secret, read_secret, sign, verify
from penstock.channels.smtp import Smtp
from penstock.channels.webhook import Webhook

__all__ = [
    "Apprise",
    "Channel",
    "Discord",
    "Flight",
    "MailEvent",
    "NextStep",
    "Notice",
    "Outcome",
    "QuietHours",
    "Recorded",
    "Resend",
    "Slack",
    "Smtp",
    "Telegram",
    "Webhook",
    "check_address",
    "id_of",
    "join_notices",
    "make_channel",
    "new_secret",
    "next_digest",
    "next_step",
    "parse_quiet",
    "parse_time",
    "post",
    "read_mail_event",
    "read_secret",
    "send_at",
    "sign",
    "verify",
]
