"""Where recordings are made: the session, its schedule, and one hook a runtime."""
