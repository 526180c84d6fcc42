"""What `convert-graph-to-loop` is made of: one file per family of graph ops, and what they share."""
