"""Durable workflows: plain functions whose steps are done once, over crashes, sleeps and deploys."""
