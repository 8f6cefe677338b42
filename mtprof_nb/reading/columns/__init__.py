"""From the events of a file to the columns of a `Trace`: kinds, tracks, links, inputs, stacks, memory."""
