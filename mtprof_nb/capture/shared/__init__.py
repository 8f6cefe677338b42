"""Parts that hooks share: buffers and their freezing, autograd's links, phases, memory, stacks."""
