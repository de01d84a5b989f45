"""Saves what the modules or layers of a float model give, for ``evaltools locate --reference_tensors=FILE.npz``.

``image`` is the input, ``input_name`` the name of the input of the .tflite file. ``names`` says for a module, or layer,
which tensor of the .tflite file holds what it gives. A tensor whose name ends in ``Relu6`` is behind the activation.
"""

import numpy as np


def save_pytorch(model, image, input_name, names, path):
    """Of a PyTorch model, with modules as in ``model.named_modules()``."""
    import torch

    found = {input_name: image}

    def keep(name):
        return lambda _module, _inputs, output: found.update({name: output.clone()})  # later modules may change it

    hooks = [module.register_forward_hook(keep(names[own])) for own, module in model.named_modules() if own in names]
    with torch.no_grad():
        model.eval()(image)
    for hook in hooks:
        hook.remove()
    arrays = {name: values.permute(0, 2, 3, 1) if values.ndim == 4 else values for name, values in found.items()}
    np.savez(path, **{name: values.numpy() for name, values in arrays.items()})  # NHWC, as .tflite files have it


def save_keras(model, image, input_name, names, path):
    """Of a Keras model."""
    import keras

    outputs = {tensor: model.get_layer(layer).output for layer, tensor in names.items()}
    arrays = keras.Model(model.inputs, outputs).predict(image, verbose=0)
    np.savez(path, **{input_name: image}, **arrays)
