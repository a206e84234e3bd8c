"""The whole engine in one process under one seed: virtual time, links, processes, hosts and disks that fail; see `__main__`."""
