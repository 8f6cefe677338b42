"""The package beside its peers: every figure is a ratio within one interleaved run."""
