"""What `conformance/run` is made of. Python 3.9 or later, the standard library alone."""
