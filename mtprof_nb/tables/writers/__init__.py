"""Writers of any `Table`, one format a file. Names are other people's text: each writer escapes them for its format."""
