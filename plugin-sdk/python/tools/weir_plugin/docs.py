"""Docstrings as people write them: in Google's style, numpy's, Sphinx's and Epydoc's."""

import inspect
import re

# The gateway takes no longer title.
TITLE_MAX = 200

_OF_PARAMETERS = {
    "args", "arguments", "attributes", "keyword args", "keyword arguments", "other parameters", "parameters", "params",
}
# What these say is for people: a schema and the code say it to programs.
_OF_PEOPLE = {
    "example", "examples", "note", "notes", "raises", "references", "return", "returns", "see also", "todo", "warns", "yield",
    "yields",
}
_NAMES = r"\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*"
_HEAD = re.compile(r"^([A-Za-z][A-Za-z ]*):\s*$")
_NUMPY_ENTRY = re.compile(rf"^({_NAMES})(?:\s*:.*)?$")
_SPHINX_PARAMETER = re.compile(r"^[:@](?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?(\*{0,2}\w+)\s*:\s*(.*)$")
_SPHINX_OTHER = re.compile(
    r"^[:@](?:type|returns?|rtype|raises?|raise|except|exception|yields?|ytype|var|ivar|cvar|vartype|meta)\b[^:]*:")
_LIST_ITEM = re.compile(r"^(?:[-*+•]|\d+[.)]|[^\s:]+:)\s")
_BULLET = re.compile(r"^[-*+•]\s+")
# A name in Markdown: `name`, *name* or **name**.
_MARKED = re.compile(r"^(`{1,2}|\*{1,2})(\w+)\1")
_SEPARATOR = re.compile(r"^\s*(?::|(?<=\s)(?:--?|–|—)\s)\s*")
_SENTENCE = re.compile(r"^(.+?[.!?])(?:\s|$)")


class Docs:
    """A docstring: title, description, and the text about each parameter."""

    def __init__(self, text):
        self.title = self.description = None
        self.parameters = {}
        self._lines = inspect.cleandoc(text or "").splitlines()
        self._at = 0
        words = []
        while self._at < len(self._lines):
            if not self._read_section():
                words.append(self._lines[self._at])
                self._at += 1
        written = re.sub(r"\n{3,}", "\n\n", "\n".join(words)).strip()
        if written:
            self._read_words(written)

    def _read_words(self, written):
        first, _, rest = written.partition("\n\n")
        paragraph = " ".join(line.strip() for line in first.splitlines())
        if len(paragraph) <= TITLE_MAX:
            self.title, self.description = paragraph, rest.strip() or paragraph
            return
        sentence = _SENTENCE.match(paragraph)
        if sentence and len(sentence[1]) <= TITLE_MAX:
            self.title = sentence[1]
        self.description = written

    def _read_section(self):
        """Reads what begins at this line, if that is a section."""
        line = self._lines[self._at]
        following = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
        if re.fullmatch(r"-{3,}\s*", following) and _section(line) is not None:
            self._at += 2
            self._read_numpy(_section(line))
        elif _HEAD.match(line) and _section(_HEAD.match(line)[1]) is not None:
            self._at += 1
            self._read_google(_section(_HEAD.match(line)[1]))
        elif _SPHINX_PARAMETER.match(line):
            names, text = _SPHINX_PARAMETER.match(line).groups()
            self._at += 1
            self._add(names, [text, *self._take_field()])
        elif _SPHINX_OTHER.match(line):
            self._at += 1
            self._take_field()
        else:
            return False
        return True

    def _take_field(self):
        """The further lines of a field of Sphinx: up to the next one, or to an empty line that nothing indented follows."""
        taken = []
        while self._at < len(self._lines) and not self._lines[self._at].startswith((":", "@")):
            rest = (line for line in self._lines[self._at:] if line.strip())
            if not self._lines[self._at].strip() and not _indent(next(rest, "")):
                break
            taken.append(self._lines[self._at])
            self._at += 1
        return taken

    def _read_google(self, is_of_parameters):
        """A section is what is indented below its head."""
        block = []
        while self._at < len(self._lines) and (not self._lines[self._at].strip() or _indent(self._lines[self._at])):
            block.append(self._lines[self._at])
            self._at += 1
        indents = [_indent(line) for line in block if line.strip()]
        if is_of_parameters and not block:
            # Some leave the indentation out.
            while self._at < len(self._lines) and (entry := _google_entry(self._lines[self._at].strip())):
                if _section(entry[0]) is not None:
                    break
                self._add(entry[0], [entry[1]])
                self._at += 1
            return
        if not is_of_parameters or not indents:
            return
        # Some write a list, whose items differ from the lines of a text only in the first line.
        first = next(line for line in block if line.strip())
        bullet = _BULLET if _BULLET.match(first.strip()) else re.compile("^")
        names, texts = None, []
        for line in block:
            entry = _google_entry(bullet.sub("", line.strip())) if _indent(line) == indents[0] else None
            if entry:
                self._add(names, texts)
                names, texts = entry[0], [entry[1]]
            else:
                texts.append(line)
        self._add(names, texts)

    def _read_numpy(self, is_of_parameters):
        """A section is a name in each line that is not indented, and what is indented below it."""
        names, texts = None, []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            following = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
            if line.strip() and not _indent(line):
                entry = _NUMPY_ENTRY.match(line)
                is_head = re.fullmatch(r"-{3,}\s*", following)
                is_entry = entry and (":" in line or _indent(following))
                if is_head or is_of_parameters and not is_entry:
                    break
                if not is_of_parameters and not self._lines[self._at - 1].strip() and not _indent(following):
                    break
                self._add(names, texts)
                names, texts = (entry[1] if entry and is_of_parameters else None), []
            else:
                texts.append(line)
            self._at += 1
        self._add(names, texts)

    def _add(self, names, texts):
        """Keeps what is said of parameters that share a text."""
        if names is None:
            return
        text = ""
        for line in (line.strip() for line in texts if line.strip()):
            text += ("\n" if _LIST_ITEM.match(line) else " ") * bool(text) + line
        for name in names.split(","):
            self.parameters[name.strip().lstrip("*")] = text


def _section(head):
    """Whether the section is about parameters; None if the words are not the head of a section."""
    head = " ".join(head.lower().split())
    return True if head in _OF_PARAMETERS else False if head in _OF_PEOPLE else None


def _google_entry(line):
    """The names and the text of `name (type): text`. The type may hold parentheses."""
    line = _MARKED.sub(r"\2", line)
    names = re.match(_NAMES, line)
    if not names:
        return None
    rest = line[names.end():]
    if rest.lstrip().startswith("("):
        rest = rest.lstrip()
        depth = 0
        for at, char in enumerate(rest):
            depth += (char == "(") - (char == ")")
            if depth == 0:
                rest = rest[at + 1:]
                break
        else:
            return None
    separator = _SEPARATOR.match(rest)
    return (names[0], rest[separator.end():].strip()) if separator else None


def _indent(line):
    return len(line) - len(line.lstrip())
