"""The experiments of Sousa's dissertation (2014) on moving copies away from slow hosts."""
