"""Notes that go away by themselves: the same words are one note with a count, and only the newest few are shown."""

from __future__ import annotations

from typing import Final, NamedTuple

from textual.notifications import Notification, Notifications

NOTES_MAX: Final = 3


class _Said(NamedTuple):
    text: str
    severity: str
    times: int


class Notes(Notifications):
    """What the application shows as toasts. The newest is always shown, and an alarming one longer than others."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, _Said] = {}

    def add(self, notification: Notification) -> Notes:
        times = 1
        for shown in list(self):
            said = self._said.get(shown.identity)
            if said is not None and said[:2] == (notification.message, notification.severity):
                times = said.times + 1
                del self[shown]
        said = _Said(notification.message, notification.severity, times)
        if times > 1:
            notification.message = f"{said.text} ({times} times)"
        super().add(notification)
        while len(self) > NOTES_MAX:
            older = list(self)[:-1]
            del self[next((each for each in older if each.severity == "information"), older[0])]
        self._said = {each.identity: self._said.get(each.identity, said) for each in self}
        return self
