"""Objects of S3 and other object stores, by fsspec: their names, their listing, ranged reads of one version of each."""
