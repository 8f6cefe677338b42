"""Records: the session, its schedule and windows, and one hook for each runtime."""
