"""The model that made vectors of the texts of a saved model, which may come from a stranger."""

from s2osc.errors import ModelError
from s2osc.nets.text_models import OWN, TextModel, load_text_model
from s2osc.pipeline.model_description import EmbeddingEntry


def restore_text_model(
    entry: EmbeddingEntry, device: str, *, allowed: str | None = None
) -> TextModel:
    """The model that an entry names.

    The entry chooses nothing: a model other than those that we read ourselves is loaded only where
    the user names it, too.
    """
    if entry.name not in (*OWN, allowed):
        raise ModelError(
            f"the model was made with the embedding {entry.name!r:.100}, which is not loaded by "
            "itself; give --embedding with that name if you trust it"
        )
    model = load_text_model(entry.name, device)
    if model.version != entry.version:
        raise ModelError(
            f"the model was made with weights {entry.version} of the embedding {entry.name}, but "
            f"those installed are {model.version}; install the earlier ones, or classify anew"
        )
    return model
