"""The eSault paper's two experiments."""
