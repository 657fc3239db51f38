"""Servers of OpenAI's API: requests, replies, refused options, usage."""
