"""Stage 2, by a controller: learns what each app's own pages tell."""
