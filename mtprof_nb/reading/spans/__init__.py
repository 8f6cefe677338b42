"""The events of a file as columns, before anything is known of what they mean."""
