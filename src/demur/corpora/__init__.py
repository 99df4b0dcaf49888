"""Texts bundled with the package; `demur.lab.corpora` reads them."""
