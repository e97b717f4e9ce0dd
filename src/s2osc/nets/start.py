"""Networks as their training begins: random, or with the weights of a pretrained network."""

import numpy as np

from s2osc.errors import SettingsError
from s2osc.nets.backbones import load_efficientnet
from s2osc.nets.networks import Network, NetworkSettings, item_shape
from s2osc.nets.photo_items import is_photos
from s2osc.nets.upper_stages import UpperStages


def start_network(settings: NetworkSettings, inputs: np.ndarray, n_outputs: int) -> Network:
    """A network for such items, which have its normalisation; that of photos is pretrained."""
    if settings.is_pretrained != is_photos(inputs):
        raise SettingsError(
            f"network.pretrained is {settings.pretrained!r}, but the items are "
            f"{'' if is_photos(inputs) else 'no '}photos that went through a pretrained network; "
            "give another preset"
        )
    network = Network(settings, item_shape(inputs), n_outputs)
    if isinstance(network.body, UpperStages):
        network.body.start_from(load_efficientnet(settings.pretrained))
    else:
        network.fit_normalisation(inputs)
    return network
