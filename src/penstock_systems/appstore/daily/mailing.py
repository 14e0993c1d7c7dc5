"""Who hears of trouble: a mail to the team, of degraded data, failed runs and dead letters, where a key for mails is set."""

from __future__ import annotations

from penstock.channels import Resend
from penstock_systems.appstore.app import app, settings, web

mail = app.on_alert(Resend(web, sender=settings.mail_from, to=settings.mail_to))
