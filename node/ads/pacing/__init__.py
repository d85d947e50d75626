"""Pacing: a budget lasts its day, and follows the traffic of the day rather than the clock.

`shape` learns when a site's visitors come, `window` says what share of a budget's day has passed by that, `campaigns`
adds up who can still pay, `rate` counts requests, `controller` decides how many page views go without an ad.
"""
