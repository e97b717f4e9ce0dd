"""Augmented views of training batches.

views         which views a network is trained with
augment       weak views of images, weak and strong views of vectors
ctaugment     strong views of images
image_ops     the image operations of CTAugment
"""
