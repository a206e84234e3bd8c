"""Running user code: batches in, columns out.

`ElementOperator` has one object per key, `ObjectOperator` one for the sub-unit, `BatchOperator` a BatchBolt.
Each has a fast loop, and a careful one for units whose rows carry ids or whose errors are not fatal: that one
notes after each tuple what it emitted, so that ids can be given and a failed try's emits can be forgotten.
"""
