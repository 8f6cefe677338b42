"""The machine that a recording is made on: its memory, its processors, and the limits of a container."""
