"""The panel as one file: a page that needs no kernel, no server and no network."""
