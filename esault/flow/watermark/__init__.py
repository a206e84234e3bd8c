"""Event time in the data path: where watermarks start, how they pass a sub-unit, and what they mean while keys move.

A watermark says: no tuple with an earlier time will come, unless it is late. A `Clock` makes one where event time starts; `Merging`
takes the least over a sub-unit's senders; `WatermarkSender` sends it down the channels, behind the rows that it covers; `Levels` keeps what
was true of keys where they came from. docs/explanation/windows.md says why each is needed.
"""
