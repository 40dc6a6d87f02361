"""What a pass is, how passes are found and run, and the remarks that they leave."""
