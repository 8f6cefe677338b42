"""Which line caused an event, and what each line cost."""
