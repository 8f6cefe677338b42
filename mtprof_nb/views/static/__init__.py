"""The panel without scripts: a page, small pictures, and text."""
