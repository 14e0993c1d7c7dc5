"""PostgreSQL: what users move to when one machine is not enough."""
