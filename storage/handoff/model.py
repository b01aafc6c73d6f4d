"""The values of a handoff: what is to be brought, what it costs, how far it is, and the proof that it is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal

from blake3 import blake3

from regions.errors import PlanError
from regions.money import Money
from storage.objects.chunks import ChunkRef, digest_in


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """An object to bring: its key (the same at both ends), its size and the BLAKE3 digest (hex) of its bytes."""

    key: str
    size: int
    digest: str

    @classmethod
    def of_chunk(cls, chunk: ChunkRef) -> Item:
        """Return the item of a chunk."""
        return cls(chunk.key, chunk.size, chunk.digest)

    @property
    def names_itself(self) -> bool:
        """Whether the key carries the digest, so that nothing else can ever stand under it."""
        return digest_in(self.key) == self.digest


@dataclass(frozen=True, slots=True)
class Document:
    """A small object that makes the items count (a manifest, a record): written last, and only if nothing stands there.

    Bytes that stand there already and are the same are as good as written; others are a ConflictError.
    """

    key: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Fare:
    """The price of moving bytes over one link. `gb` is 10**9 or 2**30 bytes, as the link's price says."""

    per_gb: Money
    gb: int = 10**9
    cap: Money | None = None

    def cost(self, size: int) -> Money:
        """Return the price of `size` bytes."""
        return self.per_gb * (Decimal(size) / self.gb)

    def check(self, size: int) -> Money:
        """Return the price, or raise PlanError if it is above the cap: before the first byte moves."""
        cost = self.cost(size)
        if self.cap is not None and self.cap < cost:
            raise PlanError(
                f"the handoff would move {size} bytes for {cost}, above its cap of {self.cap}; raise the cap, or "
                "choose a region that holds more of the data",
                kind="over-budget",
                bytes=size,
            )
        return cost


@dataclass(frozen=True, slots=True)
class Survey:
    """What the target has already, and what it lacks."""

    present: tuple[Item, ...]
    missing: tuple[Item, ...]

    @property
    def missing_bytes(self) -> int:
        """How many bytes must move."""
        return sum(item.size for item in self.missing)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a handoff is. `rate` is bytes per second since the start, `eta` seconds (None before there is a rate)."""

    done_bytes: int
    total_bytes: int
    done_items: int
    total_items: int
    rate: float
    eta: float | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The proof of a handoff: every item named by `set_digest` lies at the target, verified by its own digest.

    `complete` is false where it was cancelled: then no document was written, and the next attempt goes on from there.
    """

    source: str
    target: str
    set_digest: str
    items: int
    bytes: int
    sent_items: int
    sent_bytes: int
    present_items: int
    present_bytes: int
    resumed_bytes: int
    read_back_bytes: int
    documents: tuple[str, ...]
    seconds: float
    complete: bool
    cost: Money | None = None

    def document(self) -> dict[str, object]:
        """Return the receipt as JSON has it."""
        plain = asdict(self)
        plain["documents"] = list(self.documents)
        plain["cost"] = None if self.cost is None else {"amount": str(self.cost.amount), "currency": self.cost.currency}
        return plain


def set_digest(items: Iterable[Item]) -> str:
    """Return one digest for a set of items, whatever their order."""
    lines = "".join(f"{item.digest} {item.size} {item.key}\n" for item in sorted(set(items)))
    return blake3(lines.encode()).hexdigest()


def distinct(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items without repetitions, in order."""
    return tuple(dict.fromkeys(items))
