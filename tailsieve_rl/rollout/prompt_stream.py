"""The prompts of a run in the sampler's order, drawn by exact counts, with the warm-up's reserve kept back."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Prompt:
    """One drawn prompt.

    Attributes:
        uid: "<epoch>-<row>", after the stream's name: unique in a run, the same when a run is resumed.
        epoch: in which it was drawn.
        index: row in the data set.
        row: its fields, as the data set gives them.
    """

    uid: str
    epoch: int
    index: int
    row: dict[str, Any]


class PromptStream:
    """Draws prompts epoch after epoch, never the same one twice in an epoch.

    It stands where verl has its StatefulDataLoader (`train_dataloader`), whose state is saved as `data.pt`: a step
    draws N - q + q' prompts, and verl's loader yields fixed batches, restarts by itself and knows no reserve.

    Args:
        dataset: rows by index.
        order: yields the row numbers of one epoch each time it is iterated (verl's create_rl_sampler).
        collate: rows to a batch (verl's collate_fn).
        reserve: prompts kept back from the end of the first epoch's order; no epoch ever yields them.
        name: begins every uid; for several streams of the same prompts that meet the same engines.
    """

    def __init__(
        self,
        dataset: Any,
        order: Iterable[int],
        collate: Callable[[list[dict[str, Any]]], dict[str, Any]],
        reserve: int = 0,
        name: str = "",
    ):
        self._dataset, self._sampler, self._collate, self._reserve = dataset, order, collate, reserve
        self._name = name
        self._epoch, self._position = 0, 0
        first = [int(i) for i in self._sampler]
        self._reserved = tuple(first[len(first) - reserve :])
        self._order = self._without_reserve(first)

    @property
    def epoch_prompts(self) -> int:
        """Prompts that one epoch yields."""
        return len(self._order)

    def draw(self, count: int) -> list[Prompt]:
        """The next `count` prompts; a new epoch begins when one is used up."""
        drawn = []
        for _ in range(count):
            if self._position == len(self._order):
                self._next_epoch()
            drawn.append(self._prompt(self._epoch, self._order[self._position]))
            self._position += 1
        return drawn

    def reserved(self) -> list[Prompt]:
        """The warm-up's prompts."""
        return [self._prompt(0, index) for index in self._reserved]

    def collate(self, prompts: Sequence[Prompt]) -> dict[str, Any]:
        """One batch of the given prompts."""
        return self._collate([prompt.row for prompt in prompts])

    def state_dict(self) -> dict[str, int]:
        """Where the stream stands."""
        return {"epoch": self._epoch, "position": self._position, "reserve": self._reserve}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from a saved state. One that verl's own loader saved says nothing here: the trainer seeks instead.

        Raises:
            ValueError: if the reserve differs, since the order would then hold other prompts.
        """
        if "reserve" not in state:
            return
        if state["reserve"] != self._reserve:
            raise ValueError(
                f"the checkpoint kept {state['reserve']} prompts back for the warm-up, this run {self._reserve}: "
                "resume with the same data.train_batch_size and trainer.v1.tailsieve.warmup"
            )
        self.seek(state["epoch"], state["position"])

    def seek(self, epoch: int, position: int) -> None:
        """Stand after `position` prompts of an epoch. Only forward: the sampler's epochs are replayed up to it."""
        while self._epoch < epoch:
            self._next_epoch()
        self._position = min(position, len(self._order))

    def rewind(self, state: dict[str, int]) -> None:
        """Stand where an earlier state stood, to be saved so: the draws of a step that failed. It draws no more."""
        self._epoch, self._position, self._order = state["epoch"], state["position"], []

    def _next_epoch(self) -> None:
        self._order = self._without_reserve([int(i) for i in self._sampler])
        self._epoch, self._position = self._epoch + 1, 0

    def _without_reserve(self, order: list[int]) -> list[int]:
        reserved = set(self._reserved)
        return [index for index in order if index not in reserved]

    def _prompt(self, epoch: int, index: int) -> Prompt:
        return Prompt(f"{self._name}{epoch}-{index}", epoch, index, self._dataset[index])
