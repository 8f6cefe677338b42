"""The native recorder: C++ compiled once on this machine, for the installed torch and Python."""
