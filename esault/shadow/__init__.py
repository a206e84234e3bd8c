"""Two versions of a topology side by side on the same input: what the first reads goes to the shadow, and their outputs are compared."""
