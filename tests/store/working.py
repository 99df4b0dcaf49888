"""A program that adds, changes and removes runs until it is killed."""

import random
from multiprocessing.connection import Connection
from pathlib import Path

from demur.store.runs import Store
from store.tables import answers, write


def work(root: Path, folder: Path, me: str, seed: int, saying: Connection) -> None:
    """Works on a store, saying before and after each act what it is."""
    rng = random.Random(seed)
    logs = [write(folder / f"{me}-{k}.jsonl", answers(seed + k)) for k in range(12)]
    mine: dict[str, str] = {}

    def say(*words: str) -> None:
        saying.send("|".join(words))

    with Store.open(root) as store:
        for turn in range(10_000):
            act = rng.choice(("add", "add", "replace", "change", "remove"))
            if act == "add" or not mine:
                log = rng.choice(logs)
                if any(name.startswith(f"{log.stem}:") for name in mine.values()):
                    continue
                name = f"{log.stem}:{turn}"
                say("will", "add", name)
                run = store.add(log, name=name)[0].run
                mine[run.id] = run.name
                say("did", "add", run.name, run.id)
                continue
            id_, name = rng.choice(sorted(mine.items()))
            if act == "change":
                new = f"{name.partition(':')[0]}:{turn}"
                say("will", "change", name, new)
                store.change(id_, name=new)
                mine[id_] = new
                say("did", "change", name, new)
            elif act == "replace":
                log = rng.choice(logs)
                if any(one.startswith(f"{log.stem}:") for one in mine.values()):
                    continue
                say("will", "replace", name, id_)
                run = store.add(log, name=name, replace=True)[0].run
                del mine[id_]
                store.change(run.id, name=f"{log.stem}:{turn}")
                mine[run.id] = f"{log.stem}:{turn}"
                say("did", "replace", name, mine[run.id])
            else:
                say("will", "remove", name)
                store.remove(id_)
                del mine[id_]
                say("did", "remove", name)
