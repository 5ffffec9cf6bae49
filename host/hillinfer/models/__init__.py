"""Finding, fetching, converting and loading models.

Beside the adapter only this package knows transformers: a model must be read before there is anything to adapt.
torch and transformers are imported inside functions, so that ``import hillinfer`` and ``hillinfer --help`` stay quick.
"""

from hillinfer.models.catalogue import DEFAULT_MODEL, CatalogueEntry, catalogue, prepare
from hillinfer.models.loading import LoadedModel, load

__all__ = ["DEFAULT_MODEL", "CatalogueEntry", "LoadedModel", "catalogue", "load", "prepare"]
