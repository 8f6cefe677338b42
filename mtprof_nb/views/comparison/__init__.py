"""A comparison as text, as Markdown and as HTML."""
