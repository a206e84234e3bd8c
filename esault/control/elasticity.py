"""The former place of policies: importing it says where they are now."""

raise ImportError(
    "esault.control.elasticity is esault.policies now: `from esault.policies import Rescale, register`; "
    "in place of POLICIES['busy'] = Busy write register('busy', Busy)"
)
