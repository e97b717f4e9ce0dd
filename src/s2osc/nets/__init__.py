"""Networks, augmentation, losses, the one training loop, backbones."""
