"""Augmented views of training batches.

augment       which views a network is trained with; weak views of images, all views of vectors
ctaugment     strong views of images
image_ops     the image operations of CTAugment
"""
