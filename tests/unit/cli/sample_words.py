"""Texts and moments that samples are made of."""

from __future__ import annotations

from node.admin import protocol as p

AT = "2026-11-29T14:03:11.204Z"
EARLIER = "2026-11-29T14:00:00.000Z"
NASTY = 'é"x,\x1b[31m\ty\u202e日本\n'
VERSION = p.EntryVersion(epoch=47, hlc=123456, origin="node-1")
