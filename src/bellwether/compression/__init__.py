"""How vectors travel in fewer bytes: `train(..., compress_up=TopK(0.1), compress_down=Half())`.

They work with any method: the receiver sees vectors of the usual form. Upwards, where changes are
added up, each serves; downwards, where a whole model travels, take Half or Quantise. Every vector
of floating numbers in a message is compressed, in tuples too; batch-norm statistics are not.

               bytes a number (of 4)       unbiased       needs a memory
Half           2                           to 2^-11       no
Quantise       bits / 8                    yes            no
TopK           4 fraction + 1/8, or less   no             yes
RandomK        4 fraction                  yes            with feedback=True, which biases it
"""

from bellwether.compression.half import Half
from bellwether.compression.quantise import Quantise
from bellwether.compression.random_k import RandomK
from bellwether.compression.top_k import TopK

__all__ = ["Half", "Quantise", "RandomK", "TopK"]
