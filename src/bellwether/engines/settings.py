"""What of an interpreter decides bits; another one that computes for it takes it over."""

from typing import NamedTuple, Self

import torch


class Settings(NamedTuple):
    """torch's global settings."""

    dtype: torch.dtype
    deterministic: bool
    precision: str
    cudnn: tuple[bool, bool]

    @classmethod
    def here(cls) -> Self:
        """Those of this process."""
        cudnn = torch.backends.cudnn
        return cls(
            torch.get_default_dtype(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
            (cudnn.deterministic, cudnn.benchmark),
        )

    def adopt(self) -> None:
        """Make them this process's own; it computes on one thread."""
        torch.set_num_threads(1)
        torch.set_default_dtype(self.dtype)
        torch.use_deterministic_algorithms(self.deterministic)
        torch.set_float32_matmul_precision(self.precision)
        cudnn = torch.backends.cudnn
        cudnn.deterministic, cudnn.benchmark = self.cudnn
