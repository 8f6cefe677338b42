"""Dialects of Chrome traces, one a file: Kineto's, Ascend's, XLA's."""
