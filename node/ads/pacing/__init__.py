"""Pacing: a budget lasts its day, and follows the traffic of the day rather than the clock.

`shape` learns when a site's visitors come, `readers` when those of all sites of a campaign do; by that `window` and
`passed` say what share of a budget's day has passed. `campaigns` adds up who can still pay, and says whose impression
is due, `rate` counts requests, `controller` decides how many page views go without an ad.
"""
