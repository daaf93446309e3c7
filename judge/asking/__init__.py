"""What a command asks for, without the command: the same functions for `judge` on the command line and for Python.

`run` is judge run; `judges` has what is made of stored runs (calibrate, route, compare) and improve, by a task's name.
"""
