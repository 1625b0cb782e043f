"""Where histories are recorded: one binary, one state directory, projects with neutral paths."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import time

# The store keeps the paths of projects, so this one is the same on every machine.
ROOT = pathlib.Path("/tmp/aldis-history")
# How long anything is waited for, in seconds.
PATIENCE = 60


class World:
    """Everything that the scenarios share."""

    def __init__(self, binary, only=""):
        self.only, self.recorded_with = only, binary.resolve()
        # A copy under a neutral path: `aldis demo` stores the path of its own program.
        self.binary = ROOT / "bin/aldis"
        self.state = ROOT / "state"
        self.children = []
        for directory in ("bin", "home", "tmp"):
            (ROOT / directory).mkdir(parents=True)
        shutil.copy(binary, self.binary)

    def version(self):
        return self.run(["--version"]).stdout.split()[1]

    def wants(self, name):
        """Returns whether the scenario of this name is to be played, and says so."""
        wanted = name.startswith(self.only)
        if wanted:
            print(name, flush=True)
        return wanted

    def environment(self, name="", **more):
        """An environment with nothing of this machine or user in it."""
        home = ROOT / "home" / name
        home.mkdir(parents=True, exist_ok=True)
        return {
            "ALDIS_HOOK_DEADLINE": "30",
            "ALDIS_STATE_DIR": str(self.state),
            "HOME": str(home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "TMPDIR": str(ROOT / "tmp"),
            "TZ": "UTC",
            **more,
        }

    def run(self, arguments, cwd=ROOT, environment=None, stdin="", codes=(0,)):
        """Runs the binary to its end. Any other exit code than these is a mistake in a scenario."""
        done = subprocess.run(
            [self.binary, *arguments],
            cwd=cwd,
            env=environment or self.environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
        )
        if done.returncode not in codes:
            words = " ".join(map(str, arguments))
            said = done.stdout + done.stderr
            raise AssertionError(f"`{words}` exited with {done.returncode}:\n{said}")
        return done

    def start(self, arguments, cwd=ROOT, environment=None, **more):
        """Starts the binary and does not wait for it."""
        child = subprocess.Popen(
            [self.binary, *arguments],
            cwd=cwd,
            env=environment or self.environment(),
            stdin=subprocess.DEVNULL,
            text=True,
            **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **more},
        )
        self.children.append(child)
        return child

    def end(self):
        """Ends what a failed scenario left behind."""
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()

    def query(self, sql, *values):
        """Reads the store while the binary may be writing it."""
        database = self.state / "aldis.db"
        if not database.exists():
            return []
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=PATIENCE)
        try:
            return connection.execute(sql, values).fetchall()
        except sqlite3.OperationalError:
            return []
        finally:
            connection.close()

    def run_of(self, project):
        """The id and the state of a project's latest run, as the machine keeps it."""
        sql = "SELECT id, state FROM runs WHERE project = ? ORDER BY number DESC LIMIT 1"
        rows = self.query(sql, str(project))
        return (rows[0][0], json.loads(rows[0][1])["state"]) if rows else (None, None)


class Project:
    """A project directory and the commands that are run in it."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.path = ROOT / name
        self.path.mkdir()
        self.marks = ROOT / "marks" / name
        self.marks.mkdir(parents=True)

    def environment(self):
        return self.world.environment(self.name)

    def run(self, *arguments, stdin="", codes=(0,)):
        return self.world.run(arguments, self.path, self.environment(), stdin, codes)

    def start(self, *arguments):
        return self.world.start(arguments, self.path, self.environment())

    def write(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)
        return path

    def settings(self, text):
        """Settings of the user's own: those of a project would have to be trusted first."""
        directory = ROOT / "home" / self.name / ".config/aldis"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "aldis.toml").write_text(text)

    def git(self, *arguments):
        who = ["-c", "user.name=dev", "-c", "user.email=dev@example.com"]
        who += ["-c", "init.defaultBranch=main"]
        quiet = {"check": True, "capture_output": True}
        subprocess.run(["git", *who, *arguments], cwd=self.path, env=self.environment(), **quiet)

    def state(self):
        return self.world.run_of(self.path)[1]

    def id(self):
        return self.world.run_of(self.path)[0]

    def until(self, what, holds):
        """Waits until something holds of the state of the project's latest run."""
        known = lambda state: state is not None and holds(state)
        wait_for(f"{self.name}: {what}", lambda: known(self.state()))

    def until_mark(self, name="here"):
        """Waits for a file that an agent makes."""
        wait_for(f"{self.name}: mark {name}", (self.marks / name).exists)


class Server:
    """`aldis serve`, and requests to it."""

    def __init__(self, world, *arguments):
        self.world = world
        arguments = ["serve", "--listen", "127.0.0.1:0", *arguments]
        self.child = world.start(arguments, stdout=subprocess.PIPE)
        line = self.child.stdout.readline()
        self.address = line.removeprefix("listening on http://").strip()
        self.token = (world.state / "serve.token").read_text().strip()

    def request(self, method, path, body=None, key=None, codes=(200, 201)):
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        if key:
            headers["idempotency-key"] = key
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, headers)
        answer = connection.getresponse()
        got = json.loads(answer.read() or b"null")
        connection.close()
        if answer.status not in codes:
            raise AssertionError(f"{method} {path} {text}: {answer.status} {got}")
        return got

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, body=None, key=None, codes=(200, 201)):
        return self.request("POST", path, {} if body is None else body, key, codes)

    def stop(self):
        """Ends it as a user would."""
        self.child.send_signal(signal.SIGTERM)
        self.child.wait(PATIENCE)

    def crash(self):
        """Ends it as a power cut would."""
        kill(self.child)


def wait_for(what, holds):
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            raise AssertionError(f"waited too long for {what}")
        time.sleep(0.02)


def kill(child):
    """Ends a process at once, as a crash would."""
    os.kill(child.pid, signal.SIGKILL)
    child.wait(PATIENCE)


def ended(child, *codes):
    """Waits for a process and checks how it ended."""
    code = child.wait(PATIENCE)
    assert code in codes, f"{child.args} exited with {code}, not {codes}"
