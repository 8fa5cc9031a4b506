"""What can go wrong, as a user would sort it.

LeakmeterError             shown as one paragraph, never as a traceback
├── BadInput               the input or the request cannot be used as it is      exit code 2
│   └── CannotAnswer       an attack needs a question its model cannot answer
└── ModelFailed            the model or service failed, after retries            exit code 3
"""

from __future__ import annotations


class LeakmeterError(Exception):
    """Something a user can act on: what was wrong, where, and what to do."""

    exit_code = 2


class BadInput(LeakmeterError):
    """The input or the request cannot be used as it is."""


class CannotAnswer(BadInput):
    """An attack needs a question that the model bound to its role cannot answer."""


class ModelFailed(LeakmeterError):
    """The model or service failed; what was answered before is kept."""

    exit_code = 3
