"""An interactive profiler for tensor programs that lives under the notebook cell."""
