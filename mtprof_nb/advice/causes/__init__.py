"""Facts of a program from which causes of its time are found: gaps, input, types of tensors, time of lines."""
