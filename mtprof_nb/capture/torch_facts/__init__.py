"""Facts of torch's objects that hooks share: fast scopes, parameters of optimizers, names of modules."""
