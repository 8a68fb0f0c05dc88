"""What we use of pyarrow (see CONTRIBUTING.md)."""

from pyarrow import ipc as ipc
from pyarrow import lib as lib
from pyarrow import types as types
from pyarrow.lib import *

__version__: str
