"""The program `mtprof` for the terminal: one subcommand a file."""
