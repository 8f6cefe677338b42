"""Stacks as trees, and sums of metrics at their nodes."""
