"""Events of a trace by their names."""


def names(trace):
    return [trace.names[name] for name in trace.name]


def rows(trace, name):
    return [row for row, found in enumerate(names(trace)) if found == name]


def names_of(prof):
    return names(prof.trace)
