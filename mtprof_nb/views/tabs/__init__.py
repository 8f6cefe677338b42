"""The tabs of a panel, one folder each: Python, JavaScript, style and types together."""
