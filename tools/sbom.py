"""Writes what runs beside demur at a user's: each package with version, licence and what it needs, in CycloneDX 1.5.

It is read from what is installed, so it is true of this environment. Packages that only extras need are optional.
"""

import json
import re
import sys
import uuid
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

PACKAGE = "demur"
EXTRAS = ("all", "duckdb", "spark")

Needs = dict[str, set[str]]
"""Each package with those it needs, by their plain names."""


def plain(name: str) -> str:
    """A name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(package: Distribution, extras: tuple[str, ...]) -> Iterator[Requirement]:
    """What a package needs here, with these of its extras."""
    for text in package.requires or ():
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield one


def needs_of(name: str, extras: tuple[str, ...], found: Needs) -> Needs:
    """All that a package needs, directly or not."""
    mine = found.setdefault(plain(name), set())
    for one in required(distribution(name), extras):
        other = plain(one.name)
        if other == PACKAGE:  # an extra that names others
            needs_of(PACKAGE, tuple(sorted(one.extras)), found)
            continue
        new = other not in found or one.extras
        if other not in mine or new:
            mine.add(other)
            needs_of(one.name, tuple(sorted(one.extras)), found)
    return found


def licences(package: Distribution) -> list[dict[str, Any]]:
    """What a package says of its licence."""
    about = package.metadata
    if expression := about.get("License-Expression"):
        return [{"expression": expression}]
    kinds = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    names = kinds or [line.strip() for line in (about.get("License") or "").splitlines()[:1] if line.strip()]
    return [{"license": {"name": name}} for name in names]


def reference(name: str) -> str:
    """The address of an installed package, as tools that compare such lists write it."""
    return f"pkg:pypi/{plain(name)}@{distribution(name).version}"


def component(name: str, **more: str) -> dict[str, Any]:
    """One package."""
    package, address = distribution(name), reference(name)
    document = {"type": "library", "bom-ref": address, "name": plain(name), "version": package.version, "purl": address}
    found = licences(package)
    return {**document, **more, **({"licenses": found} if found else {})}


def document() -> dict[str, Any]:
    """The whole list; equal environments give equal lists."""
    core = needs_of(PACKAGE, (), {})
    whole: Needs = needs_of(PACKAGE, EXTRAS, {})
    names = sorted(set(whole) - {PACKAGE})
    components = [component(name, scope="required" if name in core else "optional") for name in names]
    dependencies = [_needed(name, whole) for name in (PACKAGE, *names)]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": {**component(PACKAGE), "type": "application"}},
        "components": components,
        "dependencies": dependencies,
    }


def _needed(name: str, whole: Mapping[str, set[str]]) -> dict[str, Any]:
    return {"ref": reference(name), "dependsOn": [reference(other) for other in sorted(whole[name])]}


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(json.dumps(document(), indent=2) + "\n", encoding="utf-8")
    print(f"wrote {path}")
