"""The processes of sub-units and ack servers, and the keeper that forks them."""
