"""Controllers: what finds and holds the pace at which an outside service can be asked."""
