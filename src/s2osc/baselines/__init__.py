"""The methods ours is compared with, one file each.

``shared`` holds what several of them need; ``post_hoc`` the scores on a trained classifier.
"""
