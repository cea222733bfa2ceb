"""Settings of speculative decoding by pool, under `trainer.v1.tailsieve.speculation` (paper 3.4, 4.3)."""

from dataclasses import dataclass, field

from tailsieve_rl.config.blocks import SettingsError, check_one_of

BLOCK = "trainer.v1.tailsieve.speculation"
MODES = ("fixed", "governed")
METHODS = ("mtp", "dflash", "draft_model", "ngram")
NEEDS_DRAFTER = frozenset({"dflash", "draft_model"})


@dataclass(frozen=True, slots=True)
class PoolSpeculation:
    """Drafts of one pool.

    Attributes:
        method: what drafts: "mtp", "dflash", "draft_model" or "ngram"; None: nothing does.
        depth: tokens drafted at once, in mode "fixed".
    """

    method: str | None = None
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class UniformSpeculation:
    """On all replicas when no group is isolated; what drafts is the tail pool's.

    Attributes:
        depth: tokens drafted at once, in mode "fixed"; None: half of what both pools draft, the paper's matched budget
            d_bulk + d_tail = 2 d_base.
    """

    depth: int | None = None


@dataclass(frozen=True, slots=True)
class SpeculationSettings:
    """Speculative decoding by pool. Without a method nothing is drafted.

    Attributes:
        mode: "governed" chooses each pool's depth from measured acceptance and times, "fixed" keeps the depths given.
        max_depth: D, what engines start with, 0..D being what they can be set to; None, in mode "fixed": the largest
            depth given.
        drafter: path or hub name of the drafting model, for methods "dflash" and "draft_model".
        min_acceptance: share of first drafts below which a pool's drafts are stale, and it stops drafting.
    """

    mode: str = "governed"
    max_depth: int | None = None
    tail: PoolSpeculation = field(default_factory=PoolSpeculation)
    bulk: PoolSpeculation = field(default_factory=PoolSpeculation)
    uniform: UniformSpeculation = field(default_factory=UniformSpeculation)
    drafter: str | None = None
    min_acceptance: float = 0.1

    def __post_init__(self) -> None:
        check_one_of(f"{BLOCK}.mode", self.mode, MODES)
        if not 0 <= self.min_acceptance < 1:
            raise SettingsError(f"{BLOCK}.min_acceptance", self.min_acceptance, "must be between 0 and below 1")
        for name in ("tail", "bulk"):
            self._check_pool(name, getattr(self, name))
        if not self.enabled:
            for key in ("max_depth", "drafter"):
                if getattr(self, key) is not None:
                    right = "nothing drafts: give tail.method or bulk.method"
                    raise SettingsError(f"{BLOCK}.{key}", getattr(self, key), right)
            return
        self._check_depths()
        self._check_drafter()

    @property
    def enabled(self) -> bool:
        """Whether anything drafts."""
        return bool(self.methods)

    @property
    def methods(self) -> tuple[str, ...]:
        """The tail's and the bulk pool's, where they have one; one where both have the same."""
        return tuple(dict.fromkeys(m for m in (self.tail.method, self.bulk.method) if m is not None))

    @property
    def depth(self) -> int:
        """D."""
        return self.max_depth or max(self.tail.depth or 0, self.bulk.depth or 0, self.uniform.depth or 0)

    def _check_pool(self, name: str, pool: PoolSpeculation) -> None:
        if pool.method is not None:
            check_one_of(f"{BLOCK}.{name}.method", pool.method, METHODS)
        elif pool.depth:
            raise SettingsError(f"{BLOCK}.{name}.depth", pool.depth, f"nothing drafts there: give {name}.method")

    def _check_depths(self) -> None:
        given = {f"{name}.depth": getattr(self, name).depth for name in ("tail", "bulk", "uniform")}
        for key, depth in given.items():
            if depth is not None and depth < 0:
                raise SettingsError(f"{BLOCK}.{key}", depth, "must be 0 or more")
            if depth is not None and self.max_depth is not None and depth > self.max_depth:
                raise SettingsError(f"{BLOCK}.{key}", depth, f"must be at most max_depth = {self.max_depth}")
            if depth is not None and self.mode == "governed":
                raise SettingsError(f"{BLOCK}.{key}", depth, "mode governed chooses the depths; give max_depth")
        if self.mode == "governed" and self.max_depth is None:
            raise SettingsError(f"{BLOCK}.max_depth", None, "mode governed needs the deepest draft that it may choose")
        if self.mode == "fixed":
            for name in ("tail", "bulk"):
                if getattr(self, name).method is not None and getattr(self, name).depth is None:
                    raise SettingsError(f"{BLOCK}.{name}.depth", None, "mode fixed needs the depth of each method")
        if self.depth < 1:
            key = "max_depth" if self.max_depth is not None else "tail.depth"
            raise SettingsError(f"{BLOCK}.{key}", self.depth, "must be 1 or more where something drafts")

    def _check_drafter(self) -> None:
        needs = [method for method in self.methods if method in NEEDS_DRAFTER]
        if needs and self.drafter is None:
            raise SettingsError(f"{BLOCK}.drafter", None, f"method {needs[0]} needs the path of a drafting model")
        if len(needs) > 1:
            raise SettingsError(f"{BLOCK}.drafter", self.drafter, f"is one model, and {', '.join(needs)} need one each")
        if not needs and self.drafter is not None:
            right = f"method {', '.join(self.methods)} has no drafting model of its own"
            raise SettingsError(f"{BLOCK}.drafter", self.drafter, right)
