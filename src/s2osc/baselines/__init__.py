"""The methods ours is compared with, one file each."""
