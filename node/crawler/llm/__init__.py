"""Judging a page by asking a model of somebody else's: prompt, wire formats, validation, resilience. Pure: time and
randomness are arguments, and whoever drives this sends and waits (`node.crawler.providers.remote`)."""
