"""OrientStream+: configurations chosen by what learners predict for them, and grouped so that few changes are needed."""
