"""Many processes: the same code on every engine of an ipyparallel cluster, recorded together."""
