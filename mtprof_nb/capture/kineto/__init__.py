"""Hook `kineto`: a recording by torch's own profiler, exported and read as any other Chrome trace."""
