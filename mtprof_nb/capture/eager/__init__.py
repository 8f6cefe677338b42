"""Hooks of runtimes whose dispatcher is Python, or calls it: MindTorch v2 and Candle."""
