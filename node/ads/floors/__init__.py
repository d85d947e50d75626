"""Floors: how a site's least price is learned from who bids and what is paid.

`candidates` says which prices are tried, `sweep` tries them and keeps the best, `demand` says when there is anything
to try, `site_floors` holds one learner for each category and one for the site, `quality` turns a floor into a slot's.
All prices are CPM micros, all revenues micros; every function answers a new state.
"""
