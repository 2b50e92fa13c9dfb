"""Settings, each declared once, by the annotation of its field.

The field `verifier: Annotated[Model, Prompted(), TrainedBy("train_verifier")]` declares the type, allows a language model that
answers prompts, and names the recipe that trains the model. Systems, recipes, errors, `hfcf list` and the docs read this.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from hfcf.core.model import CHAT, Model, is_chat, is_prompted
from hfcf.core.names import check_settings, did_you_mean

Seed = Annotated[int, Field(ge=0, lt=2**32, strict=True)]
"""The seed of a random generator: an integer that NumPy also accepts."""
Positive = Annotated[int, Field(ge=1, strict=True)]
"""An integer of at least 1."""
NonNegative = Annotated[int, Field(ge=0, strict=True)]
"""An integer of at least 0."""
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
"""A number between 0 and 1."""
Loss = Annotated[float, Field(ge=0, strict=True)]
"""A number of nats, at least 0."""
LogProbability = Annotated[float, Field(le=0, strict=True)]
"""The logarithm of a probability."""
Weight = Annotated[float, Field(ge=0, strict=True)]
"""A number of at least 0."""
Models = Annotated[tuple[Model, ...], BeforeValidator(lambda value: [value] if isinstance(value, Model | str | Mapping) else value)]
"""Several models; a single model counts as a list with one item."""


@dataclass(frozen=True)
class Prompted:
    """Mark a model that may be "llm:NAME" or "chat:NAME": a language model behind an endpoint, or one in this process."""


@dataclass(frozen=True)
class NeedsWeights:
    """Give the reason why a model can't be "llm:NAME" or "chat:NAME", for the error message."""

    reason: str


@dataclass(frozen=True)
class TrainedBy:
    """Name the recipe that trains the model; "" is the recipe of the rows' task."""

    recipe: str = ""


@dataclass(frozen=True)
class GoesWith:
    """Mark a setting that a preset sets only together with its own value of another setting."""

    setting: str


@dataclass(frozen=True)
class Trains:
    """Mark the hyper-parameters of a model that the stage trains on the rows, unless the setting `instead` names a model."""

    instead: str


@dataclass(frozen=True)
class Flat:
    """Mark a dataclass of settings whose fields become settings of the system."""


@dataclass(frozen=True)
class Judges:
    """Mark a model that judges the labels of rows: its classes and its longest input are checked before a run."""


@dataclass(frozen=True)
class Setting:
    """A setting of a stage or a system."""

    name: str
    annotation: Any
    default: Any
    """`dataclasses.MISSING` if the setting must be given."""

    def marker(self, kind: type[Any]) -> Any:
        """Return the annotation's marker of one kind, such as `TrainedBy`; None if there is none."""
        return next((mark for mark in _marks(self.annotation) if isinstance(mark, kind)), None)

    @property
    def type(self) -> str:
        """The type in plain words: "int | None"."""
        return _type_name(self.annotation)

    @property
    def is_number(self) -> bool:
        """Whether it is a number, or several."""
        return bool({int, float} & _scalars(self.annotation))

    def validate(self, value: Any) -> Any:
        """Convert a value to the declared type: a name to a `Model`, a list to a tuple, a mapping to a dataclass.

        Raises:
            TypeError: a mapping has a key that is not a field of the dataclass.
            ValueError: the value has the wrong type or is out of range; the message names the setting.
        """
        kind: Any = next((kind for kind in _kinds(self.annotation) if is_dataclass(kind)), None)
        if isinstance(value, Mapping) and kind not in (None, Model) and self.marker(BeforeValidator) is None:
            check_settings(kind, map(str, value))
            value = kind(**{name: settings_of(kind)[name].validate(part) for name, part in value.items()})
        elif isinstance(value, str) and kind not in (None, Model) and self.marker(BeforeValidator) is None:
            example = ", ".join(f"{name}: …" for name in list(settings_of(kind))[:2])
            raise ValueError(f"{self.name} must be of type {self.type} or a mapping such as {{{example}}}, got {value!r}")
        try:
            value = _adapter(self.annotation).validate_python(value)
        except ValidationError as error:
            raise ValueError(explain_invalid(error, value, self.name)) from None
        for model in value if isinstance(value, tuple) else (value,):
            if isinstance(model, Model) and is_prompted(model) and self.marker(Prompted) is None:
                why = self.marker(NeedsWeights)
                reason = f": {why.reason}" if why else ""
                kind = f"asked by prompts ({CHAT}NAME)" if is_chat(model) else "a language model behind an endpoint"
                raise ValueError(f"{self.name}={model.name!r} can't be {kind}{reason}")
        return value


def settings_of(cls: Any) -> dict[str, Setting]:
    """Return the settings of a dataclass by name: the fields that its constructor takes."""
    return _settings_of(cls)


@lru_cache(maxsize=256)
def _settings_of(cls: Any) -> dict[str, Setting]:
    hints = get_type_hints(cls, include_extras=True)
    defaults = {field.name: field.default for field in fields(cls) if field.init}
    defaults |= {field.name: field.default_factory() for field in fields(cls) if field.default_factory is not MISSING}
    return {name: Setting(name, hints[name], default) for name, default in defaults.items()}


def check_fields(config: Any) -> None:
    """Raise `ValueError` for a field of a dataclass that has another type than is declared, or is out of range."""
    for name, setting in settings_of(type(config)).items():
        setting.validate(getattr(config, name))


def check_numbers(config: Any) -> None:
    """Raise `ValueError` for a number among a dataclass's fields that has another type than is declared, or is out of range."""
    for name, setting in settings_of(type(config)).items():
        if setting.is_number:
            setting.validate(getattr(config, name))


def check_search(num_beams: int, **numbers: int) -> None:
    """Raise `ValueError` where a beam search can't return so many hypotheses; the setting with their number is named.

    >>> check_search(4, num_candidates=10)
    Traceback (most recent call last):
    ValueError: num_candidates must be at most num_beams (4), got 10
    """
    for name, number in numbers.items():
        if number > num_beams:
            raise ValueError(f"{name} must be at most num_beams ({num_beams}), got {number}")


def models_in(values: Mapping[str, Any]) -> Iterator[tuple[str, Model]]:
    """Yield the models among settings, with names such as "verifier" or "judges[0]"; models inside groups are left out."""
    for name, value in values.items():
        if isinstance(value, Model):
            yield name, value
        elif isinstance(value, tuple):
            yield from ((f"{name}[{i}]", model) for i, model in enumerate(value) if isinstance(model, Model))


def read_models(config: Any) -> Iterator[tuple[str, Model]]:
    """Yield all models that a dataclass of settings refers to, including the models inside groups of settings.

    The model of an engine's settings has the name of the setting that holds the engine. A stage does not train a model if another
    setting names a model instead. A model of Stanza does not have a Hub id, and is named "stanza:en".
    """
    for name, setting in settings_of(type(config)).items():
        value, mark = getattr(config, name), setting.marker(Trains)
        if mark and (getattr(config, mark.instead, None) is not None or not getattr(config, "fit_inputs", ())):
            continue
        yield from models_of(name, value, flat=setting.marker(Flat) is not None)


def models_of(name: str, value: Any, *, flat: bool = False) -> Iterator[tuple[str, Model]]:
    """Yield the models of one setting, by name; see `read_models`. The settings of a `flat` group have their own names."""
    yield from models_in({name: value})
    if not is_dataclass(value) or isinstance(value, Model | type):
        return
    for inner, model in read_models(value):
        if flat:
            yield inner, model
            continue
        if getattr(value, "backend", None) == "stanza" and not os.path.isdir(model.name):
            model = Model(f"stanza:{model.name}")
        yield (name if inner == "model" else f"{name}.{inner}"), model


def to_builtin(value: Any) -> Any:
    """Return the value of a setting as plain data, for cards and `run.json`."""
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: to_builtin(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_builtin(item) for key, item in value.items()}
    return [to_builtin(item) for item in value] if isinstance(value, list | tuple) else value


@lru_cache(maxsize=1024)
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    # Numbers and texts are not converted: "3" is not a number. Lists become tuples, and mappings become dataclasses.
    plain_types = _kinds(annotation) <= {int, float, bool, str, type(None)}
    return TypeAdapter(annotation, config=ConfigDict(strict=True, allow_inf_nan=False) if plain_types else None)


def _kinds(annotation: Any) -> set[Any]:
    """Return the types in the union that an annotation is."""
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) is None:
        return {annotation}
    options = get_args(annotation)
    return set().union(*map(_kinds, options)) if type(None) in options else {annotation}


def _marks(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__
        annotation = get_args(annotation)[0]
    for part in get_args(annotation):
        yield from _marks(part)


def _scalars(annotation: Any) -> set[Any]:
    """Return the types at the leaves of an annotation."""
    if get_origin(annotation) is Annotated:
        return _scalars(get_args(annotation)[0])
    parts = get_args(annotation)
    return set().union(*map(_scalars, parts)) if parts and get_origin(annotation) is not Literal else {annotation}


def _type_name(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        return _type_name(get_args(annotation)[0])
    if annotation in (None, type(None)):
        return "None"
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is None:
        return getattr(annotation, "__name__", str(annotation))
    if origin is tuple:
        return f"tuple of {_type_name(parts[0])}"
    names = [repr(part) if isinstance(part, str) else _type_name(part) for part in parts]
    return " | ".join(names)


_WORDS = {
    "Input should be": "must be", "greater than or equal to": "at least", "less than or equal to": "at most",
    "greater than": "above", "less than": "below", "Value error, ": "",
}  # fmt: skip
"""What is shorter than pydantic's words."""


def explain_invalid(error: ValidationError, content: Any, where: str) -> str:
    """Write pydantic's errors about a value as one line: the place, pydantic's words, and the value.

    Args:
        error: what pydantic raised; the errors of all members of a union are one.
        content: the value as a whole, in which places are found.
        where: what the value is: the name of a setting, or of a file.
    """
    first, *others = error.errors(include_url=False)
    path, kind, value = _path(first["loc"], content), first["type"], first["input"]
    at = where + "".join(f"[{part}]" if isinstance(part, int) else f": {part}" for part in path)
    if kind == "missing":
        return f"{at}: the key {first['loc'][-1]!r} is missing"
    words = [first["msg"], *(other["msg"] for other in others if _path(other["loc"], content) == path)]
    for pydantics, ours in _WORDS.items():
        words = [text.replace(pydantics, ours) for text in words]
    text = " or ".join(dict.fromkeys([words[0], *(word.removeprefix("must be ") for word in words[1:])]))
    if kind in ("value_error", "unknown_key"):
        text += "" if isinstance(value, Mapping) or quote(value) in text else f", got {quote(value)}"
        return at + (text if text.startswith((":", " ")) else f" {text}" if text.startswith("must ") else f": {text}")
    near = did_you_mean(value, re.findall(r"'([^']*)'", first["ctx"]["expected"])) if kind == "literal_error" else ""
    return f"{at} {text}, got {quote(value)}{near}"


def _path(loc: Iterable[str | int], content: Any) -> list[str | int]:
    """Return the keys on the way to an error, without the names that pydantic gives to members of a union."""
    path: list[str | int] = []
    for part in loc:
        if (isinstance(content, Mapping) and part in content) or (isinstance(content, list | tuple) and isinstance(part, int)):
            content = content[part]  # type: ignore[index]
            path.append(part)
    return path


def quote(value: Any) -> str:
    """Quote a value in an error, which stays one line."""
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]} …"
