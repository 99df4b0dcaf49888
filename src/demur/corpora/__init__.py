"""Texts bundled with the package; `demur.data.corpora` reads them."""
