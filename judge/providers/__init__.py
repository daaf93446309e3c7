"""Models behind one interface. A new vendor is one new file here with a class `Provider`."""
