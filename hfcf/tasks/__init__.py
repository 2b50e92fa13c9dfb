"""What is known of each task."""
