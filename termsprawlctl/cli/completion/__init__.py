"""What a shell can offer next: out of the argparse tree, the operation table and the running session."""
