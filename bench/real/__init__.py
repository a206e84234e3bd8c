"""The work that users do, as the documentation tells them to do it: eSault, Bytewax and a plain loop, from the command to the prompt."""
