"""ImageNet classification."""
