"""Devices: when each was busy, why it was idle, what it copied, and which op launched each kernel."""
