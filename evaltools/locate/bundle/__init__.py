"""What is written for others to reproduce a finding: a small model, inputs, and a script."""
