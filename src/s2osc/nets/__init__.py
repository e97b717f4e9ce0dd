"""What we learn with: networks, augmentation, losses, the one training loop."""
