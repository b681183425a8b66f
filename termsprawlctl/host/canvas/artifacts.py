"""Which files may be shown on a canvas: text and images inside the project."""

from __future__ import annotations

import codecs
import os
import re

from ...base.errors import CtlError
from ...base.files import is_inside, read_part

# How much of a file is looked at: where a text file of another encoding or a binary one
# begins, it shows.
HEAD_BYTES = 64 << 10
# How images begin, by content; the name proves nothing.
_IMAGE = re.compile(
    rb"\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP|BM.{12}|\x00\x00\x01\x00"
    rb"|\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<svg\b",
    re.DOTALL,
)
_ABSOLUTE = 'Give the whole path, for example path="$(realpath docs/plan.md)".'


def resolve(path: str, folder: str, *, as_diff: bool) -> str:
    """The real path of a text file inside the folder, or of an image where it is not shown as a diff.

    Links are followed first, so one that leads out of the folder is refused, and what is
    opened later is what was looked at here. Raises CtlError.
    """
    if not os.path.isabs(path):
        raise CtlError(f"{path} is not an absolute path.", _ABSOLUTE)
    try:
        path.encode()  # a name that is not UTF-8 could not be read back from the project file
        real = os.path.realpath(path)
        real.encode()
        if not is_inside(real, folder):
            raise CtlError(f"{path} is outside the project {folder}.", "Tell the user where the file is instead.")
        head = read_part(real, 0, HEAD_BYTES, os.O_NOFOLLOW)
        if as_diff or not _IMAGE.match(head):
            _check_text(path, head)
    except UnicodeEncodeError:
        raise CtlError("The file's name is not UTF-8.", "Rename it.") from None
    except OSError as error:
        raise CtlError(f"Cannot open {path}: {error.strerror}.", "Check the path.") from None
    return real


def _check_text(path: str, head: bytes) -> None:
    try:
        # A character may be cut in two at the end of what was read.
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError:
        text = False
    else:
        text = b"\0" not in head
    if not text:
        raise CtlError(
            f"{path} is neither text in UTF-8 nor an image that can be shown so.",
            "Name its path in your reply instead.",
        )
