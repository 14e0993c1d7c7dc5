"""Fake servers that the brand system calls: social networks, Ghost, and pages of the web. Each counts what arrived."""

from penstock_systems.standins.publishing.ghost import KEY as GHOST_KEY
from penstock_systems.standins.publishing.ghost import Ghost
from penstock_systems.standins.publishing.pages import Pages
from penstock_systems.standins.publishing.social import Social, SocialFaults
from penstock_systems.standins.publishing.world import PAGES, make_world
from penstock_systems.standins.publishing.writer import write_reply

__all__ = ["GHOST_KEY", "PAGES", "Ghost", "Pages", "Social", "SocialFaults", "make_world", "write_reply"]
