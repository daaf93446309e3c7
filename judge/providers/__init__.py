"""Model providers behind one interface.

To add a vendor, add a module with a class `Provider` to this package.
"""
