"""Live change: rows and state of moved keys go from their old owner to their new one while all else flows.

The protocol is in docs/explanation/rescaling.md. `StateSender` is the old owner's side, `StateReceiver` the new owner's; both are plain cores that the sub-unit
asks about every batch it reads while a change is on. The one invariant: at no time may two sub-units process a key.

One thing is done earlier than the protocol asks: the state of moved keys is sent from HandOverRanges on, not from the last
barrier on. Since every row of a moved key that is read after HandOverRanges is carried and none is processed, the state cannot change
any more; only the carried rows have to wait for the barriers, which prove that there are no more of them.
"""
