"""The functions behind the `judge` commands, shared by the command line and the Python API.

`run` implements `judge run`. `judges` implements `judge calibrate`, `route`, `compare` and `improve` for a task given by name.
"""
