"""What services are sent, and their port."""
