"""The documentation as a site: `python -m tools.site` builds it into build/site, to be read from there without a server."""
