"""Declare a system's stages: each takes those of the system's settings that it knows by the same name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Generic, Self, TypeVar, overload

from hfcf.core.stage import Stage

S = TypeVar("S", bound=Stage)


class StageOf(Generic[S]):
    """A stage of a system, as an attribute of the system's class.

    The stage takes every setting that the system has under the same name, `seed` and `strict` among them; as `system` and `task` it
    takes the system's name and task. A setting that the system does not have keeps the stage's default.

    Args:
        stage: the stage's class.
        settings: settings of the stage that are not the system's of that name: a value, or a function of the system.

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> from hfcf.core.system import System
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Shorten(Stage):
    ...     words: int = 10
    ...     reverse: bool = False
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Short(System):
    ...     chain: ClassVar[tuple[str, ...]] = ("shorten",)
    ...     words: int = 5
    ...     shorten = StageOf(Shorten, reverse=lambda short: short.words < 5)
    >>> Short(words=3, seed=7).shorten
    Shorten(seed=7, strict=False, words=3, reverse=True)
    """

    def __init__(self, stage: type[S], **settings: Any) -> None:
        names = {field.name for field in fields(stage)}
        if unknown := sorted(set(settings) - names):
            raise TypeError(f"{stage.__name__} has no setting {unknown[0]!r}: its settings are {', '.join(sorted(names))}")
        self.stage, self.settings = stage, settings

    @overload
    def __get__(self, system: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, system: Any, owner: type[Any]) -> S: ...
    def __get__(self, system: Any, owner: type[Any]) -> Self | S:
        if system is None:
            return self
        shared = {field.name for field in fields(system)}
        values: dict[str, Any] = {}
        for name in (field.name for field in fields(self.stage)):
            if name in self.settings:
                value = self.settings[name]
                values[name] = value(system) if callable(value) else value
            elif name == "system":
                values[name] = system.name
            elif name in shared or name == "task":
                values[name] = getattr(system, name)
        return self.stage(**values)
