"""Parts that hooks share: buffers and their freezing, autograd's links, stacks."""
