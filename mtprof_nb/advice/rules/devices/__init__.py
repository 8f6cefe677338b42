"""Rules about devices, and the host that waits for them."""
