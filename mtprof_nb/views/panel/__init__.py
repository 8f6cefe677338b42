"""The panel as a widget: its tabs, its scripts, its messages."""
