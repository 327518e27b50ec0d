"""The networks of the experiments, as factories and by their names, and their losses."""

from bellwether.models import losses
from bellwether.models.catalogue import create, default_for, names
from bellwether.models.cnn import digits_cnn, fsl_cifar_cnn, fsl_emnist_cnn, mcmahan_cnn
from bellwether.models.divisions import blocks
from bellwether.models.lenet import lenet5, lenet5_28, lenet5_32, lenet_fedbcgd
from bellwether.models.mobilenet import mobilenet_v2
from bellwether.models.perceptron import logistic_regression, mlp
from bellwether.models.resnet import resnet18
from bellwether.models.vgg import vgg11, vgg19
from bellwether.models.vit import vit_base

__all__ = [
    "blocks",
    "create",
    "default_for",
    "digits_cnn",
    "fsl_cifar_cnn",
    "fsl_emnist_cnn",
    "lenet5",
    "lenet5_28",
    "lenet5_32",
    "lenet_fedbcgd",
    "logistic_regression",
    "losses",
    "mcmahan_cnn",
    "mlp",
    "mobilenet_v2",
    "names",
    "resnet18",
    "vgg11",
    "vgg19",
    "vit_base",
]
