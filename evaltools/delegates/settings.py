"""The delegate flags of one configuration: what was given, in order, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from evaltools.delegates.provider import Delegate
from evaltools.delegates.registry import COMMON, DELEGATES, PARAMETERS, owner_of
from evaltools.errors import UsageError
from evaltools.parameter import Parameter, Value, did_you_mean


@dataclass(frozen=True)
class DelegateSettings:
    """Delegate flags as given, from left to right.

    Build it with :meth:`from_flags`, which refuses what the native tools would silently ignore.

    >>> settings = DelegateSettings.from_flags([("use_gpu", "true"), ("gpu_backend", "cl")])
    >>> [delegate.name for delegate in settings.requested], settings.value("gpu_precision_loss_allowed")
    (['GPU'], True)
    >>> settings.to_flags()
    ['--use_gpu=true', '--gpu_backend=cl']
    """

    given: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def from_flags(cls, flags: Iterable[tuple[str, str]]) -> DelegateSettings:
        """Parse ``(name, text)`` pairs; raises :class:`UsageError` for anything that would not take effect.

        A delegate that is switched off in so many words (``use_gpu=false``) may keep its other flags, so that a script
        can toggle it.
        """
        values: dict[str, Value] = {}
        for name, text in flags:
            parameter = _known_parameter(name)
            value = parameter.parse(text)
            owner = owner_of(name)
            if value == "" and owner is not None and name == owner.enabled_by:
                raise UsageError(f"--{name} is empty; give a file, or leave the flag out")
            if values.setdefault(name, value) != value:
                message = f"--{name} is given twice, as {parameter.format(values[name])} and {parameter.format(value)}"
                raise UsageError(f"{message}; the native tools take the first. Keep one")
        settings = cls(tuple(values.items()))
        settings._refuse_flags_without_effect()
        for delegate in settings.requested:
            if delegate.check is not None:
                delegate.check(settings._values)
        return settings

    @cached_property
    def _values(self) -> Mapping[str, Value]:
        return dict(self.given)

    def is_given(self, name: str) -> bool:
        """Whether the flag was stated; ``use_xnnpack`` means three different things: true, false, not given."""
        return name in self._values

    def value(self, name: str) -> Value:
        """The value in force: the one given, else the default."""
        return self._values.get(name, PARAMETERS[name].default)

    @property
    def requested(self) -> tuple[Delegate, ...]:
        """The delegates switched on, ordered by the position of their enabling flag, as the native tools apply them."""
        position = {name: index for index, name in enumerate(self._values)}
        enabled = [delegate for delegate in DELEGATES if delegate.is_enabled(self._values)]
        return tuple(sorted(enabled, key=lambda delegate: position[delegate.enabled_by]))

    @property
    def one_session(self) -> bool:
        """Whether a delegate owns its device, so that only one session may use it."""
        return any(
            delegate.owns_device and not (delegate.per_worker_flag and self.value(delegate.per_worker_flag))
            for delegate in self.requested
        )

    def to_flags(self) -> list[str]:
        """The flags in the order given, as the native tools read those that they have."""
        return [PARAMETERS[name].format(value) for name, value in self.given]

    def effective_options(self, delegate: Delegate) -> dict[str, Value]:
        """All values of a delegate, defaults included, and those of the common flags that it reads."""
        own = [parameter.name for parameter in delegate.parameters]
        common = [parameter.name for parameter in COMMON if parameter.name in delegate.common]
        return {name: self.value(name) for name in own + common}

    def without(self, delegate: Delegate) -> DelegateSettings:
        """The same without a delegate: its flags, and common flags that no other delegate reads, are dropped."""
        others = [other for other in self.requested if other is not delegate]
        kept = tuple(
            (name, value)
            for name, value in self.given
            if owner_of(name) is not delegate
            and (owner_of(name) is not None or any(name in other.common for other in others))
        )
        return DelegateSettings(kept)

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


def _known_parameter(name: str) -> Parameter:
    try:
        return PARAMETERS[name]
    except KeyError:
        raise UsageError(f"--{name}: no such delegate flag.{did_you_mean(name, PARAMETERS)}") from None


def _without_effect(name: str, readers: tuple[Delegate, ...]) -> str:
    switches = " or ".join(_enabling_example(delegate) for delegate in readers)
    return f"--{name} has no effect: it belongs to a delegate that is not switched on. Add {switches}"


def _enabling_example(delegate: Delegate) -> str:
    is_switch = PARAMETERS[delegate.enabled_by].type == "bool"
    return f"--{delegate.enabled_by}={'true' if is_switch else 'FILE'}"
