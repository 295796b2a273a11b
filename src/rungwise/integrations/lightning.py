"""Measures of rungwise in a training of Lightning: logged, written as results, and the best model kept by them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import MissingExtraError, UserError
from rungwise.core.output import some_of

try:
    from lightning.pytorch.callbacks import ModelCheckpoint
except ModuleNotFoundError as error:
    raise MissingExtraError("lightning", "rungwise.integrations.lightning") from error

from rungwise.integrations.torchmetrics import Graded

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

    from rungwise.evaluation import Result

__all__ = ["GradedRetrieval"]

_TAKEN = ("image_embeddings", "text_embeddings", "images", "captions")
"""What ``validation_step`` returns, by the names of :meth:`Graded.update`."""


class GradedRetrieval(ModelCheckpoint):
    """Evaluates after every validation, logs the numbers, keeps the best model and writes results as JSON.

    The module's ``validation_step`` returns a dictionary with ``image_embeddings``, ``text_embeddings`` and their
    positions ``images`` and ``captions`` in the validation data, whatever else besides. The numbers are logged by their
    names, such as ``t2i/nDCG@10``, so that other callbacks can monitor them.

    The best model is kept as any :class:`~lightning.pytorch.callbacks.ModelCheckpoint` keeps it, a checkpoint of
    Lightning, and what was best so far is restored with the trainer's state. Beside the checkpoints stand
    ``epoch=E-step=S.json``, a :class:`~rungwise.evaluation.Result` for each validation, and ``best.json``, that of
    the best model. The first process alone writes. The sanity check of Lightning is not measured.

    Args:
        metric: What is measured, over which degrees.
        monitor: The number by which a model is the best, of ``metric.names``. Default: the first one.
        dataloader: Number of the validation loader that is measured, where there are several.
        **checkpoint: Options of ``ModelCheckpoint``, such as ``dirpath``, ``filename`` and ``save_last``.

    Attributes:
        result: Result of the last validation; None before it.

    Raises:
        UserError: If the metric has no number of the name ``monitor``.

    >>> callback = GradedRetrieval(Graded(["MedR", "rsum"], image_of_caption=[0, 0, 1]), monitor="t2i/MedR")
    >>> callback.monitor, callback.mode
    ('t2i/MedR', 'min')
    """

    result: Result | None

    def __init__(self, metric: Graded, *, monitor: str | None = None, dataloader: int = 0, **checkpoint: Any) -> None:
        name = metric.names[0] if monitor is None else monitor
        if name not in metric.names:
            raise UserError(f"monitor={name!r} is not measured; give one of {some_of(metric.names, 300)}")
        mode = "max" if metric.is_rising(name) else "min"
        # Validation, and so the number, may come before the end of a training epoch or without one.
        super().__init__(monitor=name, mode=mode, save_on_train_epoch_end=False, **checkpoint)
        self.result = None
        self._metric, self._dataloader = metric, dataloader

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the vectors of an earlier validation."""
        self._metric.to(pl_module.device).reset()

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Take the vectors of a batch.

        Raises:
            UserError: If ``validation_step`` did not return them, or they do not fit the data.
        """
        if dataloader_idx != self._dataloader:
            return
        given = outputs if isinstance(outputs, Mapping) else {}
        if not any(name in given for name in _TAKEN):
            raise UserError(f"validation_step returned none of {', '.join(_TAKEN)}; return a dictionary with them")
        self._metric.update(**{name: given[name] for name in _TAKEN if name in given})

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Measure and log; what did not come, because batches are limited, is said in a warning."""
        if trainer.sanity_checking:
            return
        with self._metric.sync_context():
            self.result = self._metric.result()
        self._metric.reset()
        pl_module.log_dict({name: self.result[name] for name in self._metric.names}, sync_dist=True)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the model if it is among the best, and write the results."""
        before = self.best_model_path
        super().on_validation_end(trainer, pl_module)
        trial = trainer.sanity_checking or getattr(trainer, "fast_dev_run", False)
        if self.result is None or trial or trainer.state.fn != "fit" or not trainer.is_global_zero:
            return
        folder = Path(str(self.dirpath))
        self.result.to_json(folder / f"epoch={trainer.current_epoch}-step={trainer.global_step}.json")
        if self.best_model_path != before:
            self.result.to_json(folder / "best.json")
