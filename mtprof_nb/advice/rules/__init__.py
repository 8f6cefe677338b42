"""The rules, one a module. A module is listed in `advice.advising`, which imports it."""
