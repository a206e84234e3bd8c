"""The web UI: a page in a browser that shows runs, and the application that answers it."""
