"""Small folders in the layout of the Dialog State Tracking Challenges, made up for the tests."""

import gzip
import json
from math import log
from pathlib import Path
from typing import Any

ONTOLOGY = {"informable": {"food": ["thai", "korean"], "area": ["north", "south"], "type": ["restaurant"]}}


def act(name: str, *slots: tuple[str, Any]) -> dict[str, Any]:
    return {"act": name, "slots": [list(slot) for slot in slots]}


THAI = [act("inform", ("food", "thai")), act("inform", ("type", "restaurant"))]
KOREAN = [act("inform", ("food", "korean"))]
PHONE = [act("request", ("slot", "phone")), act("bye")]


def log_turn(index: int, *hypotheses: tuple[float, list[dict[str, Any]]], **rest: Any) -> dict[str, Any]:
    heard = {
        "asr-hyps": [{"asr-hyp": "thai food", "score": -0.5}],
        "slu-hyps": [{"slu-hyp": acts, "score": score} for score, acts in hypotheses],
    }
    batch = {
        "asr-hyps": [{"asr-hyp": "tie food", "score": -0.25}],
        "cnet": [
            {"start": 0.0, "end": 0.1, "arcs": arcs(("<s>", 1.0), ("!null", 1e-20))},
            {"start": 0.1, "end": 0.2, "arcs": arcs(("tie", 0.25), ("thai", 0.5), ("!null", 0.125), ("high", 1e-4))},
            {"start": 0.2, "end": 0.3, "arcs": arcs(("!null", 1.0))},
            {"start": 0.3, "end": 0.4, "arcs": arcs(("food", 0.75), ("!null", 0.0625), ("</s>", 0.0625))},
        ],
    }
    return {"turn-index": index, "output": {"dialog-acts": [act("welcomemsg")]}} | {
        "input": {"live": heard, "batch": batch} | rest
    }


def arcs(*words: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"word": word, "score": log(share)} for word, share in words]


def label_turn(index: int, reference: list[dict[str, Any]], text: str = "thai food") -> dict[str, Any]:
    return {"turn-index": index, "transcription": text, "semantics": {"json": reference, "cam": "null()"}}


def session_log(session: str, *turns: dict[str, Any]) -> dict[str, Any]:
    conditions = {"dialog-manager": 1, "acoustic-condition": 0}
    return {"session-id": session, "caller-id": "x", "system-specific": conditions, "turns": list(turns)}


def session_label(session: str, *turns: dict[str, Any]) -> dict[str, Any]:
    feedback = {"success": True, "comments": None, "questionnaire": [["Did it understand?", "agree"], ["Twice?", None]]}
    return {"session-id": session, "turns": list(turns), "task-information": {"goal": {}, "feedback": feedback}}


def written(path: Path, document: Any) -> Path:
    """Writes a document as JSON, compressed where the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=1).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def corpus(root: Path, *sessions: str, ending: str = ".json", ontology: bool = True) -> Path:
    """A folder with a dialogue of two turns for each session, its label's turns in another order."""
    for session in sessions or ("part-1/voip-a", "part-2/voip-b"):
        name = Path(session).name
        folder = root / session
        turns = log_turn(0, (0.75, THAI), (0.25, KOREAN)), log_turn(1, (0.5, PHONE), (1.5, []))
        written(folder / f"log{ending}", session_log(name, *turns))
        labels = label_turn(1, PHONE, "phone bye"), label_turn(0, THAI)
        written(folder / f"label{ending}", session_label(name, *labels))
    if ontology:
        written(root / "ontology_test.json", ONTOLOGY)
    return root
