"""Advice: rules that find in a recording what to change, each with its line, evidence, fix and upper bound."""
