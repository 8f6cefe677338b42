"""Dialects of Chrome traces: what the spans of Kineto, Ascend and XLA are."""
