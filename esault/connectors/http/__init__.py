"""HTTP: sources that take POSTs, ask and listen, and a sink that sends POSTs. Loads aiohttp when asked, never before."""
