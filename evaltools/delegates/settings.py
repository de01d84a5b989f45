"""The delegate flags of one configuration: what was given, in order, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count
from typing import NamedTuple

from msgspec import Struct

from evaltools.delegates.provider import Delegate
from evaltools.delegates.registry import DELEGATES, PARAMETERS, owner_of
from evaltools.errors import UsageError
from evaltools.parameter import Value, did_you_mean


class DelegateSettings(Struct, frozen=True, dict=True):
    """Delegate flags as given, from left to right.

    Build it with :meth:`from_flags`, which refuses what the native tools would silently ignore.

    >>> settings = DelegateSettings.from_flags([("use_gpu", "true"), ("gpu_backend", "cl")])
    >>> [delegate.name for delegate in settings.requested], settings.value("gpu_precision_loss_allowed")
    (['GPU'], True)
    >>> settings.to_flags()
    ['--use_gpu=true', '--gpu_backend=cl']

    A delegate whose enabling flag is repeatable is switched on again by each of them. The flags behind it, up to the
    next one, are its own; those before the first belong to the first.

    >>> flags = [("external_delegate_path", "a.so"), ("external_delegate_path", "b.so")]
    >>> settings = DelegateSettings.from_flags([*flags, ("external_delegate_options", "k:v")])
    >>> [(delegate.name, settings.values_of(delegate)) for delegate in settings.requested][1]
    ('EXTERNAL#2', {'external_delegate_path': 'b.so', 'external_delegate_options': 'k:v'})
    """

    given: tuple[tuple[str, Value], ...] = ()
    left_out: frozenset[str] = frozenset()
    """Names of delegates that stood among several of their kind; the others keep their numbers."""

    @classmethod
    def from_flags(cls, flags: Iterable[tuple[str, str]]) -> DelegateSettings:
        """Parse ``(name, text)`` pairs; raises :class:`UsageError` for anything that would not take effect.

        A delegate that is switched off in so many words (``use_gpu=false``) may keep its other flags, so that a script
        can toggle it.
        """
        placed: dict[_NumberedFlag, Value] = {}
        for place, value in _placed((name, _parsed(name, text)) for name, text in flags):
            if placed.setdefault(place, value) != value:
                parameter = PARAMETERS[place.name]
                both = f"{parameter.format(placed[place])} and {parameter.format(value)}"
                raise UsageError(f"--{place.name} is given twice, as {both}; the native tools take the first. Keep one")
        settings = cls(tuple((place.name, value) for place, value in placed.items()))
        settings._refuse_flags_without_effect()
        for delegate in settings.requested:
            if delegate.check is not None:
                delegate.check(settings.values_of(delegate))
        return settings

    @cached_property
    def _all(self) -> Mapping[_NumberedFlag, Value]:
        return dict(_placed(self.given, self.left_out))

    @cached_property
    def _values(self) -> Mapping[str, Value]:
        """The flags of a delegate by name; of several delegates of a kind, those of the first."""
        return {
            place.name: value
            for place, value in self._all.items()
            if place.number == _number_after(0, owner_of(place.name), self.left_out)
        }

    def is_given(self, name: str) -> bool:
        """Whether the flag was stated. For ``use_xnnpack``, not stated means something else than true and false."""
        return name in self._values

    def value(self, name: str) -> Value:
        """The value in force: the one given, else the default. Of several delegates of a kind, that of the first."""
        return self._values.get(name, PARAMETERS[name].default)

    def values(self, name: str) -> list[Value]:
        """All flags that were given, with those of further delegates of a kind."""
        return [value for given, value in self.given if given == name]

    def values_of(self, delegate: Delegate) -> dict[str, Value]:
        """The flags that were given for one delegate."""
        own = {parameter.name for parameter in delegate.parameters}
        return {at.name: value for at, value in self._all.items() if at.name in own and at.number == delegate.number}

    @property
    def requested(self) -> tuple[Delegate, ...]:
        """The delegates switched on, ordered by the position of their enabling flag, as the native tools apply them."""
        enabled = {delegate.enabled_by: delegate for delegate in DELEGATES}
        switches = (
            (place, enabled[place.name]) for place, value in self._all.items() if place.name in enabled and value
        )
        return tuple(delegate.numbered(place.number) for place, delegate in switches)

    @property
    def one_session(self) -> bool:
        """Whether only one session may use a delegate's device at a time."""
        return any(
            delegate.owns_device and not self.values_of(delegate).get(delegate.per_worker_flag)
            for delegate in self.requested
        )

    def to_flags(self) -> list[str]:
        """The flags in the order given, as the native tools read those that they have."""
        return [PARAMETERS[name].format(value) for name, value in self.given]

    def effective_options(self, delegate: Delegate) -> dict[str, Value]:
        """All values of a delegate, defaults included, and those of the common flags that it reads."""
        own = {parameter.name: parameter.default for parameter in delegate.parameters} | self.values_of(delegate)
        return own | {name: self.value(name) for name in PARAMETERS if name in delegate.common}

    def without(self, delegate: Delegate) -> DelegateSettings:
        """The settings without one delegate: its flags are dropped, and common flags that no other delegate reads."""
        own = {parameter.name for parameter in delegate.parameters}
        read = frozenset().union(*(other.common for other in self.requested if other != delegate))
        kept = tuple(
            (at.name, value)
            for at, value in self._all.items()
            if (at.name not in own or at.number != delegate.number)
            and (owner_of(at.name) is not None or at.name in read)
        )
        left_out = self.left_out | {delegate.name} if delegate.is_repeatable else self.left_out
        return DelegateSettings(kept, left_out)

    def _refuse_flags_without_effect(self) -> None:
        for name in self._values:
            owner = owner_of(name)
            readers = (owner,) if owner else tuple(d for d in DELEGATES if name in d.common)
            if owner is not None and name == owner.enabled_by:
                continue
            if not any(self.is_given(delegate.enabled_by) for delegate in readers):
                raise UsageError(_without_effect(name, readers))
        pair = ("delegate_serialize_dir", "delegate_serialize_token")
        if any(self.value(name) for name in pair) and not all(self.value(name) for name in pair):
            raise UsageError("--delegate_serialize_dir and --delegate_serialize_token work only together; give both")


class _NumberedFlag(NamedTuple):
    """A flag with the number, from 1, of the delegate that it belongs to, where several are of one kind."""

    name: str
    number: int


def _placed(
    given: Iterable[tuple[str, Value]], left_out: frozenset[str] = frozenset()
) -> Iterator[tuple[_NumberedFlag, Value]]:
    seen: dict[str, int] = {}
    for name, value in given:
        owner = owner_of(name)
        if owner is not None and name == owner.enabled_by:
            seen[owner.name] = _number_after(seen.get(owner.name, 0), owner, left_out)
        number = seen.get(owner.name) if owner is not None and owner.is_repeatable else None
        yield _NumberedFlag(name, number or _number_after(0, owner, left_out)), value


def _number_after(number: int, owner: Delegate | None, left_out: frozenset[str]) -> int:
    """The number of the next delegate of a kind; it is always 1 where a configuration has only one."""
    if owner is None or not owner.is_repeatable:
        return 1
    return next(after for after in count(number + 1) if owner.numbered(after).name not in left_out)


def _parsed(name: str, text: str) -> Value:
    if name not in PARAMETERS:
        raise UsageError(f"--{name}: no such delegate flag.{did_you_mean(name, PARAMETERS)}")
    value = PARAMETERS[name].parse(text)
    owner = owner_of(name)
    if value == "" and owner is not None and name == owner.enabled_by:
        raise UsageError(f"--{name} is empty; give a file, or leave the flag out")
    return value


def _without_effect(name: str, readers: tuple[Delegate, ...]) -> str:
    switches = " or ".join(_enabling_example(delegate) for delegate in readers)
    return f"--{name} has no effect: it belongs to a delegate that is not switched on. Add {switches}"


def _enabling_example(delegate: Delegate) -> str:
    is_switch = PARAMETERS[delegate.enabled_by].type == "bool"
    return f"--{delegate.enabled_by}={'true' if is_switch else 'FILE'}"
