from typing import Any, Literal, Optional, Union, final

__all__ = ["Finding", "Message", "Rules", "Scanner", "explain", "read_transcript"]

_Text = Union[str, bytes]
_Origin = Literal["assistant", "host", "subagent", "system", "tool", "user"]

@final
class Rules:
    """A set of dialects, compiled once and used for any number of texts.

    ``dialects`` are names of built-in ones, ``promise=TEXT`` and ``turn=KEYWORD`` included;
    ``files`` are the texts of dialect files. Without either: all built-in dialects. ``strict``
    refuses claims that words around them make doubtful.
    """

    def __new__(
        cls, *dialects: str, files: list[str] = ..., strict: bool = False
    ) -> Rules: ...
    @property
    def dialects(self) -> list[str]: ...
    def scan(
        self,
        text: _Text,
        *,
        origin: Optional[_Origin] = None,
        token: Optional[str] = None,
        require_token: bool = False,
    ) -> list[Finding]:
        """Scans a whole message.

        ``origin`` is who wrote it, ``assistant`` by default; nobody else's words count. With a run
        ``token``, a signal with another token is refused, and with ``require_token`` also one
        without. Offsets are bytes of UTF-8."""
    def scanner(
        self,
        *,
        origin: Optional[_Origin] = None,
        token: Optional[str] = None,
        require_token: bool = False,
    ) -> Scanner:
        """Begins a message that comes in chunks."""
    def instructions(self, token: Optional[str] = None) -> str:
        """The instructions an agent needs to write signals of these dialects."""

@final
class Scanner:
    """A scan of one message that comes in chunks, cut anywhere."""

    def push(self, chunk: _Text) -> list[Finding]:
        """Scans the next chunk and returns what is certain by now."""
    def finish(self) -> list[Finding]:
        """Ends the message and returns what was still undecided."""

@final
class Finding:
    """A signal, or a near miss: something that looks like a signal and does not count."""

    @property
    def kind(self) -> Literal["signal", "near_miss"]: ...
    @property
    def counts(self) -> bool: ...
    @property
    def dialect(self) -> str: ...
    @property
    def signal(self) -> str:
        """The canonical name of the signal, or of the one that a near miss resembles."""
    @property
    def meaning(self) -> Optional[str]:
        """``done``, ``blocked``, ``progress``, ...; None for a near miss."""
    @property
    def subject(self) -> Optional[str]: ...
    @property
    def payload(self) -> Optional[str]: ...
    @property
    def progress(self) -> Optional[int]: ...
    @property
    def fields(self) -> dict[str, Any]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def reason(self) -> Optional[str]:
        """Why a near miss does not count: a stable code."""
    @property
    def hint(self) -> Optional[str]:
        """What to write instead of a near miss."""
    @property
    def more(self) -> int:
        """How many later near misses of its kind it stands for."""
    @property
    def via(self) -> Optional[Literal["said", "token"]]:
        """How a signal came: ``token`` with the run token."""
    @property
    def origin(self) -> _Origin: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int:
        """From 1, in bytes, as are ``start`` and ``end`` from 0."""
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def raw(self) -> str: ...

@final
class Message:
    """A message of a transcript."""

    @property
    def index(self) -> int: ...
    @property
    def entry(self) -> Optional[int]:
        """The line of the file, from 1."""
    @property
    def origin(self) -> _Origin: ...
    @property
    def agent(self) -> Optional[str]: ...
    @property
    def sidechain(self) -> bool: ...
    @property
    def live(self) -> bool:
        """Whether it is part of the conversation as it stands: not rewound, not of another session."""
    @property
    def may_signal(self) -> bool:
        """Whether a signal in it can count."""
    @property
    def at(self) -> Optional[str]: ...
    @property
    def id(self) -> Optional[str]: ...
    @property
    def text(self) -> str: ...
    @property
    def findings(self) -> list[Finding]: ...

def read_transcript(
    data: _Text,
    format: str,
    agent: Optional[str],
    rules: Optional[Rules],
    token: Optional[str],
    require_token: bool,
) -> list[Message]: ...
def explain(findings: list[Finding]) -> str: ...
