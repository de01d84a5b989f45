"""COCO detection."""
