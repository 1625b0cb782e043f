"""From a store to files: one journal per run, and the whole database."""

import collections
import datetime
import gzip
import json
import pathlib
import shutil
import sqlite3

from .world import ROOT

EFFECT_STATES = ("pending", "done", "given_up")


def write(world, out):
    """Writes all runs of the world's store."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    database = ROOT / "aldis.db"
    shutil.copy(folded(world.state / "aldis.db"), database)
    connection = sqlite3.connect(database)
    for name, run in named(connection):
        lines = [compact(line) for line in journal(connection, run)]
        (out / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        view = pathlib.Path(run["project"]) / ".caw/auto-state.json"
        if run["active"] and view.exists():
            copy = out / "projects" / name / ".caw/auto-state.json"
            copy.parent.mkdir(parents=True)
            shutil.copy(view, copy)
    connection.close()
    check_neutral(database.read_bytes(), world)
    with open(out / "store.db.gz", "wb") as file:
        # Without a name and a time the same database makes the same bytes.
        with gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(database.read_bytes())


def check_neutral(stored, world):
    """Checks that nothing in the database tells where it was recorded."""
    for private in (pathlib.Path.home(), pathlib.Path(__file__).parents[2], world.recorded_with):
        assert str(private).encode() not in stored, f"the database names {private}"


def folded(database):
    """Folds the write-ahead log in, so that the file is the whole database."""
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return database


def named(connection):
    """Every run under the name of its scenario: its project's, or its id where that was chosen."""
    connection.row_factory = sqlite3.Row
    seen = collections.Counter()
    for run in connection.execute("SELECT * FROM runs ORDER BY number").fetchall():
        name = run["id"] if run["project"] == "serve" else pathlib.Path(run["project"]).name
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name}-{seen[name]}"), run


def journal(connection, run):
    """The lines of a run's file."""
    yield {
        "v": 1,
        "machine": run["machine"],
        "run": run["id"],
        "project": run["project"],
        "driver": driver(run),
        "revision": run["revision"],
        "active": bool(run["active"]),
        "title": run["title"],
        "session": run["session"],
    }
    rows = lambda table, order: connection.execute(
        f"SELECT * FROM {table} WHERE run = ? ORDER BY {order}", (run["id"],)
    )
    for row in rows("events", "seq"):
        event = {"seq": row["seq"], "at": moment(row["at"]), "kind": row["kind"]}
        yield {"event": {**event, "source": row["source"], "body": json.loads(row["body"])}}
    for row in rows("decisions", "seq"):
        decision = {"seq": row["seq"], "revision": row["revision"], "at": moment(row["at"])}
        yield {"decision": {**decision, "body": json.loads(row["body"])}}
    for row in rows("parts", "key"):
        yield {"part": {"key": row["key"], "body": json.loads(row["body"])}}
    for row in rows("outbox", "seq"):
        effect = {"key": row["key"], "kind": row["kind"], "state": EFFECT_STATES[row["state"]]}
        yield {"effect": {**effect, "body": json.loads(row["body"])}}
    for row in rows("timers", "key"):
        yield {"timer": {"key": row["key"], "due": moment(row["due"])}}
    yield {"state": json.loads(run["state"])}


def compact(line):
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def driver(run):
    """Who steps a run."""
    if run["project"] == "serve":
        return "server"
    return "hook" if run["machine"] == "phases" else "process"


def moment(millis):
    """A time as the binary writes it: RFC 3339, with a fraction only where there is one."""
    at = datetime.datetime.fromtimestamp(millis // 1_000, datetime.timezone.utc)
    fraction = f".{millis % 1_000:03}".rstrip("0") if millis % 1_000 else ""
    return at.strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"


def coverage(out):
    """Says how often each rule, event and effect occurs, by machine."""
    counts = collections.defaultdict(collections.Counter)
    files = sorted(out.glob("*.jsonl"))
    for file in files:
        header, *lines = map(json.loads, file.read_text().splitlines())
        machine = header["machine"]
        counts[machine, "runs"][header["driver"]] += 1
        for line in lines:
            if "event" in line:
                counts[machine, "events"][line["event"]["kind"]] += 1
            elif "decision" in line:
                body = line["decision"]["body"]
                counts[machine, "rules"][body["rule"]] += 1
                effects = [effect["effect"] for effect in body.get("effects", [])]
                counts[machine, "effects"].update(effects)
            elif "effect" in line:
                # The parcel of a sink holds an effect that its decision holds too.
                name = line["effect"]["body"].get("effect")
                name = name if isinstance(name, str) else line["effect"]["kind"]
                counts[machine, "effects"][name] += 1
    size = sum(file.stat().st_size for file in files)
    packed = (out / "store.db.gz").stat().st_size
    text = [f"{len(files)} runs, {size} bytes of journals, {packed} bytes of database"]
    for (machine, what), found in sorted(counts.items()):
        listed = ", ".join(f"{name} {count}" for name, count in sorted(found.items()))
        text.append(f"{machine} {what} ({len(found)}): {listed}")
    return "\n".join(text)
