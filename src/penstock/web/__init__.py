"""HTTP: queues and the database for whoever is not this program, in the shapes of Cloudflare's API."""
