"""Demonstration data: sites, pages, advertisers, campaigns, creatives."""
