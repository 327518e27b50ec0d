"""Server data: which samples the server owns."""

from bellwether.federation.server_data.base import Holdings, Pool, ServerData
from bellwether.federation.server_data.from_clients import FromClients
from bellwether.federation.server_data.other import Other
from bellwether.federation.server_data.sample import Sample
from bellwether.federation.server_data.shifted import Shifted

__all__ = ["FromClients", "Holdings", "Other", "Pool", "Sample", "ServerData", "Shifted"]
