"""Fake servers of mail, webhooks and chats. They keep a count, in a file, of what really arrived."""

from penstock_systems.standins.notifications.arrivals import Arrivals
from penstock_systems.standins.notifications.chats import Chats
from penstock_systems.standins.notifications.receivers import CHARACTERS, Receivers, Times
from penstock_systems.standins.notifications.resend import Faults, Resend
from penstock_systems.standins.notifications.server import make_servers

__all__ = ["CHARACTERS", "Arrivals", "Chats", "Faults", "Receivers", "Resend", "Times", "make_servers"]
